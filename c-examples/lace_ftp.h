/* The control connection of FTP (RFC 959): commands, replies, and the opening of data connections. */
#ifndef LACE_FTP_H
#define LACE_FTP_H

#include "lace_tool.h"

#include <stddef.h>
#include <stdint.h>

struct ftp {
	struct tool *tool;
	const char *user, *password;
	uint32_t timeout_ms; /* how long a reply may take */
	int pasv;            /* ask for PASV without trying EPSV */
	int verbose;         /* show commands and replies on stderr */

	lace_tcp tcp;   /* 0: not open */
	char text[512]; /* first line of the last reply; what is longer was cut */
	char in[1024];  /* received, not yet looked at */
	size_t at, len;
};

/* All of these return a negative LACE_E... on failure. LACE_EREMOTEIO: the server refused; what it said was shown. */

/* Connects, logs in and sets the type of transfers. */
int64_t ftp_open(struct ftp *ftp, const char *host, int ascii);
/* Length of a file (RFC 3659 §4). A refusal is not shown: many servers do not tell. */
int64_t ftp_size(struct ftp *ftp, const char *path);
/* Opens a data connection and has the server begin with `verb` on it, `offset` bytes into the file. */
lace_tcp ftp_transfer(struct ftp *ftp, const char *verb, const char *path, uint64_t offset);
/* Closes a data connection, at once if the transfer failed, and hears how it went. */
int64_t ftp_transfer_end(struct ftp *ftp, lace_tcp data, int failed);
/* Says goodbye. */
void ftp_close(struct ftp *ftp);
/* Lets the stack work, or sleeps a while. */
int ftp_turn(struct ftp *ftp);

#endif
