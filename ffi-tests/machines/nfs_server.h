/* A port mapper, MOUNT and NFS version 3 by UDP, made of arithmetic: /export/boot/kernel is the peer's file. */
#ifndef NFS_SERVER_H
#define NFS_SERVER_H

#include "peer.h"

/* For `peer.udp`. */
void nfs_server(struct peer *p, unsigned from_port, unsigned to_port, const uint8_t *message, size_t length);

#endif
