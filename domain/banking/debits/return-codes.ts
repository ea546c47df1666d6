/**
 * What the reasons of returns mean here. Source: Nacha Operating Rules, Appendix Four, "Return Entries" (the codes and
 * their titles), Subsection 2.12.4 "Reinitiation of Returned Entries" (what may be presented again) and Subsection 2.17.2
 * "Entry Return Rates" (the groups whose rates are watched).
 */
export interface ReturnCode {
  readonly title: string
  /** Whose rate counts it beside the rate of all returns. */
  readonly group: 'unauthorized' | 'administrative' | null
  /** The account is not debited any more, until an operator enables it again. */
  readonly disables: boolean
  /** The bank that returns: RDFI; ODFI, which dishonors a return; or the RDFI again, which contests that. */
  readonly by: 'receiver' | 'originator' | 'contested'
}

/** A code that a return can have: R01 to R85. */
export const RETURN_CODE = /^R(0[1-9]|[1-7]\d|8[0-5])$/

/** The same without R61 to R77, by which banks dispute a return. */
export const RETURN_CODE_OF_RECEIVER = /^R(0[1-9]|[1-5]\d|60|7[89]|8[0-5])$/

const of = (title: string, more: Partial<ReturnCode> = {}): ReturnCode => ({
  title,
  group: null,
  disables: false,
  by: 'receiver',
  ...more,
})
const administrative = { group: 'administrative', disables: true } as const
const unauthorized = { group: 'unauthorized', disables: true } as const
const disables = { disables: true } as const
const originator = { by: 'originator' } as const
const contested = { by: 'contested' } as const

export const RETURN_CODES: Readonly<Record<string, ReturnCode>> = {
  R01: of('Insufficient funds'),
  R02: of('Account closed', administrative),
  R03: of('No account, or unable to locate it', administrative),
  R04: of('Invalid account number', administrative),
  R05: of('Unauthorized debit to a consumer account', unauthorized),
  R06: of('Returned at the request of the originating bank'),
  R07: of('Authorization revoked', unauthorized),
  R08: of('Payment stopped'),
  R09: of('Uncollected funds'),
  R10: of('Originator not known or not authorized', unauthorized),
  R11: of('Not in accordance with the authorization', unauthorized),
  R12: of('Branch sold to another bank', disables),
  R13: of('Receiving bank does not take part', disables),
  R14: of('Representative payee deceased', disables),
  R15: of('Account holder deceased', disables),
  R16: of('Account frozen', disables),
  R17: of('Entry cannot be processed, or begun under questionable circumstances'),
  R18: of('Improper entry date'),
  R19: of('Amount field error'),
  R20: of('Account takes no debits', disables),
  R21: of('Invalid company identification'),
  R22: of('Invalid individual identification'),
  R23: of('Credit refused by the receiver'),
  R24: of('Duplicate entry'),
  R25: of('Addenda error'),
  R26: of('Mandatory field error'),
  R27: of('Trace number error'),
  R28: of('Check digit of the routing number is wrong', disables),
  R29: of('Corporate customer says not authorized', unauthorized),
  R30: of('Receiving bank takes no truncated checks'),
  R31: of('Permitted late return'),
  R32: of('Receiving bank cannot settle'),
  R33: of('Return of a destroyed check entry'),
  R34: of('Participation of the receiving bank is limited'),
  R35: of('Improper debit'),
  R36: of('Improper credit'),
  R37: of('Source document presented as well'),
  R38: of('Payment stopped on the source document'),
  R39: of('Improper source document'),
  R40: of('Returned by a federal agency'),
  R41: of('Invalid transaction code in an enrollment'),
  R42: of('Routing number error in an enrollment'),
  R43: of('Invalid account number in an enrollment'),
  R44: of('Invalid individual identification in an enrollment'),
  R45: of('Invalid name in an enrollment'),
  R46: of('Invalid payee indicator in an enrollment'),
  R47: of('Duplicate enrollment'),
  R50: of('State law on represented checks'),
  R51: of('Represented check is not eligible or improper', unauthorized),
  R52: of('Payment stopped on a represented check'),
  R53: of('Check and its representment both presented'),
  R61: of('Misrouted return', originator),
  R62: of('Return of an erroneous or reversing debit', originator),
  R67: of('Duplicate return', originator),
  R68: of('Untimely return', originator),
  R69: of('Field errors', originator),
  R70: of('Permitted return not accepted', originator),
  R71: of('Misrouted dishonored return', contested),
  R72: of('Untimely dishonored return', contested),
  R73: of('Timely original return', contested),
  R74: of('Corrected return', contested),
  R75: of('Return not a duplicate', contested),
  R76: of('No errors found', contested),
  R77: of('Dishonored return not accepted', contested),
  R80: of('International entry coded wrongly'),
  R81: of('International entries not agreed on'),
  R82: of('Invalid foreign receiving bank'),
  R83: of('Foreign bank cannot settle'),
  R84: of('Not processed by the gateway'),
  R85: of('International payment coded as a domestic one'),
}

/** Reasons for which a debit may be presented again: the money was not there. */
const REPRESENTABLE: ReadonlySet<string> = new Set(['R01', 'R09'])
const NO_ACCOUNT: ReadonlySet<string> = new Set(['R02', 'R03', 'R04', 'R12', 'R13', 'R28'])
/** How often a debit may be presented again, and within how many days of its first entry date. */
export const MOST_REPRESENTMENTS = 2
export const REPRESENTMENT_DAYS = 180

/** Whether an account is not debited any more after a return; unknown codes disable nothing. */
export function disablesAccount(code: string): boolean {
  return RETURN_CODES[code]?.disables ?? false
}

/**
 * Whether a return says that there is no such account: closed, unknown, a number that is none, at a bank that gave it away
 * or takes no part.
 */
export function saysNoAccount(code: string): boolean {
  return NO_ACCOUNT.has(code)
}

/** Whether a further return of a disabled account says more than the one that disabled it. */
export function outweighs(code: string, before: string): boolean {
  return saysNoAccount(code) && !saysNoAccount(before)
}

/** Whether a debit that was returned may be presented again by its code. */
export function mayBeRepresented(code: string): boolean {
  return REPRESENTABLE.has(code)
}

/** Whether a code of a return says that the receiver's bank sends the money back, and disputes no return. */
export function isReturnOfReceiver(code: string): boolean {
  return RETURN_CODE_OF_RECEIVER.test(code)
}
