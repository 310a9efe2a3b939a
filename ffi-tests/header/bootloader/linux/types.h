/* Stands in for the header of that name in U-Boot and barebox: the names a library may take from it, no more. */
#ifndef LINUX_TYPES_H
#define LINUX_TYPES_H
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
typedef unsigned long uintptr_t;
typedef __SIZE_TYPE__ size_t;
#endif
