/*
 * Bootlace: a network stack for code that runs before, or without, an operating system.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Made from src/ffi by `make header`: change it there.
 */

#ifndef BOOTLACE_H
#define BOOTLACE_H

#include "bootlace_port.h"

/**
 * Most bytes of a transport header: TCP with all options.
 */
#define MAX_L4 60



/**
 * Most spans a frame's body is made of.
 */
#define MAX_BODY 4

/**
 * Addresses an interface can hold.
 */
#define ADDRESSES 4

/**
 * Multicast groups an interface can be a member of, beside 224.0.0.1.
 */
#define GROUPS 4

/**
 * Most bytes of a datagram's front a client is shown to say where the datagram belongs.
 */
#define HEAD 256

/**
 * Requests before an address counts as unreachable.
 */
#define TRIES 4

/**
 * Length of a packet in bytes; what follows is Ethernet padding.
 */
#define PACKET_LEN 28

/**
 * Length of the fixed part, without the magic cookie, in bytes.
 */
#define FIXED_LEN 236

/**
 * Least length of a message as emitted: BOOTP relays and servers may drop shorter ones (RFC 951 §3, RFC 1542 §2.1).
 */
#define MIN_LEN 300

/**
 * Port servers listen on.
 */
#define SERVER_PORT 67

/**
 * Port clients listen on.
 */
#define CLIENT_PORT 68

/**
 * Subnet mask.
 */
#define SUBNET_MASK 1

/**
 * Routers: a list of addresses.
 */
#define ROUTER 3

/**
 * Name servers: a list of addresses.
 */
#define DNS_SERVER 6

/**
 * Host name.
 */
#define HOST_NAME 12

/**
 * Domain name.
 */
#define DOMAIN_NAME 15

/**
 * Root path.
 */
#define ROOT_PATH 17

/**
 * Interface MTU.
 */
#define INTERFACE_MTU 26

/**
 * Broadcast address.
 */
#define BROADCAST 28

/**
 * Vendor specific information, often encapsulated options.
 */
#define VENDOR_SPECIFIC 43

/**
 * Requested IP address.
 */
#define REQUESTED_IP 50

/**
 * Lease time in seconds.
 */
#define LEASE_TIME 51

/**
 * `file` or `sname` or both hold options.
 */
#define OVERLOAD 52

/**
 * Message type.
 */
#define MESSAGE_TYPE 53

/**
 * Server identifier.
 */
#define SERVER_ID 54

/**
 * Parameter request list.
 */
#define PARAMETER_LIST 55

/**
 * Error message.
 */
#define MESSAGE 56

/**
 * Longest message the sender takes.
 */
#define MAX_MESSAGE_SIZE 57

/**
 * Renewal time T1 in seconds.
 */
#define RENEWAL_TIME 58

/**
 * Rebinding time T2 in seconds.
 */
#define REBINDING_TIME 59

/**
 * Vendor class identifier.
 */
#define VENDOR_CLASS 60

/**
 * Client identifier.
 */
#define CLIENT_ID 61

/**
 * TFTP server name.
 */
#define TFTP_SERVER_NAME 66

/**
 * Boot file name.
 */
#define BOOT_FILE 67

/**
 * User class (RFC 3004).
 */
#define USER_CLASS 77

/**
 * Client system architecture (RFC 4578 §2.1).
 */
#define CLIENT_ARCH 93

/**
 * Client network interface identifier (RFC 4578 §2.2).
 */
#define CLIENT_NDI 94

/**
 * Client machine identifier (RFC 4578 §2.3).
 */
#define CLIENT_UUID 97

/**
 * Domain search list (RFC 3397).
 */
#define DOMAIN_SEARCH 119

/**
 * Classless static routes (RFC 3442).
 */
#define CLASSLESS_ROUTES 121

/**
 * TFTP server addresses (RFC 5859).
 */
#define TFTP_SERVER_ADDRESS 150

/**
 * Length of a header in bytes.
 */
#define HEADER_LEN 12

/**
 * Longest name on the wire, with the length bytes and the root, in bytes (RFC 1035 §2.3.4).
 */
#define MAX_NAME_LEN 255

/**
 * Longest label in bytes (RFC 1035 §2.3.4).
 */
#define MAX_LABEL_LEN 63

/**
 * Port servers listen on.
 */
#define PORT 53

/**
 * Class of a record or question: the Internet.
 */
#define CLASS_IN 1

/**
 * Length of a header with one 802.1Q tag, in bytes.
 */
#define TAGGED_HEADER_LEN 18

/**
 * Least length of a frame without its check sequence, in bytes: shorter ones are padded with zeros (IEEE 802.3 §4A.2.3.2.4).
 */
#define MIN_FRAME_LEN 60

/**
 * Length of a message in bytes.
 */
#define MESSAGE_LEN 8

/**
 * Longest header, with 40 bytes of options.
 */
#define MAX_HEADER_LEN 60

/**
 * Longest payload of a packet whose header has no options, in bytes.
 */
#define MAX_PAYLOAD_LEN (UINT16_MAX - (uint16_t)HEADER_LEN)

/**
 * Length of a header with the router alert option, in bytes.
 */
#define ROUTER_ALERT_HEADER_LEN 24

/**
 * Largest shift of the window scale option (RFC 7323 §2.3).
 */
#define MAX_WINDOW_SCALE 14

/**
 * Length of what precedes the data of a DATA packet, in bytes.
 */
#define DATA_HEADER_LEN 4

/**
 * A span of time in microseconds.
 */
typedef struct Duration Duration;

/**
 * One cache entry.
 */
typedef struct Entry Entry;

/**
 * Code of an ERROR packet (RFC 1350 §5, RFC 2347).
 */
typedef struct ErrorCode ErrorCode;

/**
 * An EtherType, in host order.
 */
typedef struct EtherType EtherType;

/**
 * A point in time: microseconds on the stack's own time line.
 */
typedef struct Instant Instant;

/**
 * Type of a record or question.
 */
typedef struct Kind Kind;

/**
 * Index of an interface in the stack's table.
 */
typedef struct NicId NicId;

/**
 * What a frame carries.
 */
typedef struct Protocol Protocol;

/**
 * Response code (RFC 1035 §4.1.1).
 */
typedef struct Rcode Rcode;

typedef struct State State;

/**
 * A partial one's-complement sum, kept in native byte order. Sums of spans that begin at an even offset of the summed
 * data add with `+`; a span that begins at an odd offset goes through [`Sum::swapped`] first. Sums are equal when they
 * fold to the same 16 bits.
 */
typedef struct Sum Sum;

/**
 * Why a destination is unreachable (RFC 792, RFC 1122 §3.2.2.1, RFC 1812 §5.2.7.1).
 */
typedef struct Unreachable Unreachable;

























































































#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The version of the library that is linked in, as `major << 16 | minor << 8 | patch`. A program compiled against
 * another version's header runs as long as the major numbers agree and the library is not the older one.
 */
uint32_t lace_version(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* BOOTLACE_H */
