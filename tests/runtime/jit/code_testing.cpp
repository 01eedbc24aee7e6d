#include "code_testing.hpp"

asm(R"(
.text
.intel_syntax noprefix
.globl collage_test_call_kernel
collage_test_call_kernel:
  push rbx
  push rbp
  push r12
  push r13
  push r14
  push r15
  push rdx
  mov rax, rdi
  mov rdi, rsi
  mov rbx, 0x11
  mov rbp, 0x22
  mov r12, 0x33
  mov r13, 0x44
  mov r14, 0x55
  mov r15, 0x66
  call rax
  pop rdx
  mov [rdx], rbx
  mov [rdx + 8], rbp
  mov [rdx + 16], r12
  mov [rdx + 24], r13
  mov [rdx + 32], r14
  mov [rdx + 40], r15
  pushfq
  pop rax
  mov [rdx + 48], rax
  pop r15
  pop r14
  pop r13
  pop r12
  pop rbp
  pop rbx
  ret
.att_syntax
)");
