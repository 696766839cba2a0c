"""Whom to preempt, with classical preemption and with fair sharing."""
