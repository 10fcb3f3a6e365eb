/* SPDX-License-Identifier: Apache-2.0 */
/* The libraries that programs load, inside the executable: `rondo sim` needs no file beside it. */
    .section .rodata
    .global rondo_sim_libcuda_begin
    .global rondo_sim_libcuda_end
    .global rondo_sim_interpose_begin
    .global rondo_sim_interpose_end
    .balign 16
rondo_sim_libcuda_begin:
    .incbin RONDO_SIM_LIBCUDA_FILE
rondo_sim_libcuda_end:
    .byte 0
    .balign 16
rondo_sim_interpose_begin:
    .incbin RONDO_SIM_INTERPOSE_FILE
rondo_sim_interpose_end:
    .byte 0
    .section .note.GNU-stack, "", %progbits
