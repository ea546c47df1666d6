const WEIGHTS = [3, 7, 1] as const

/**
 * True for 9 digits whose check digit is right: weighted 3, 7, 1 in turn they sum to a multiple of 10.
 * Source: American Bankers Association, "Routing Number Administrative Rules".
 */
export function isRoutingNumber(text: string): boolean {
  if (!/^\d{9}$/.test(text) || text === '000000000') return false
  const sum = [...text].reduce((total, digit, index) => total + Number(digit) * WEIGHTS[index % 3]!, 0)
  return sum % 10 === 0
}
