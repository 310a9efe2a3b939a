/* See host.h. */
#include "../host.h"
