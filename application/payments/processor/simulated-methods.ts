/** Whether a payment method is one of the simulated card processor. */
export function isSimulatedMethod(paymentMethodId: string): boolean {
  return paymentMethodId.startsWith('pm_card_')
}

/** Whether it declines every charge of a payment method. */
export function declinesAlways(paymentMethodId: string | null): boolean {
  return paymentMethodId === 'pm_card_declined'
}
