/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated libnvidia-ml.so.1, inside the executable: `rondo sim` needs no file beside it. */
    .section .rodata
    .global rondo_sim_nvml_begin
    .global rondo_sim_nvml_end
    .balign 16
rondo_sim_nvml_begin:
    .incbin RONDO_SIM_NVML_FILE
rondo_sim_nvml_end:
    .byte 0
    .section .note.GNU-stack, "", %progbits
