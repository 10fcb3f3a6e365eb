/* SPDX-License-Identifier: Apache-2.0 */
/* librondo.so, inside the executable: what runs in pods and the agent that it talks to are always of one build. */
    .section .rodata
    .global rondo_shim_begin
    .global rondo_shim_end
    .balign 16
rondo_shim_begin:
    .incbin RONDO_SHIM_FILE
rondo_shim_end:
    .byte 0
    .section .note.GNU-stack, "", %progbits
