/* The blocks of memory the header recommends, as arrays whose size the object file tells. */
#include <bootlace.h>

#ifdef LACE_STACK_SIZE_TFTP
extern uint8_t ram_tftp[LACE_STACK_SIZE_TFTP];
uint8_t ram_tftp[LACE_STACK_SIZE_TFTP];
#endif
#ifdef LACE_STACK_SIZE_DEFAULT
extern uint8_t ram_default[LACE_STACK_SIZE_DEFAULT];
uint8_t ram_default[LACE_STACK_SIZE_DEFAULT];
#endif
