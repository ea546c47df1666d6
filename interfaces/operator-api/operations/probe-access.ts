import type { IncomingMessage, ServerResponse } from 'node:http'
import { BlockList, isIPv4 } from 'node:net'
import type { Application } from '../../../application/commands/application.ts'
import type { AddressRange } from '../../../infrastructure/config/config.ts'
import { bearerToken, type OperatorGate } from '../../http/bearer.ts'
import { HttpError } from '../../http/errors.ts'
import { limitAddress, type RateLimiter } from '../../http/rate-limit.ts'

/** Access to the state and the figures of this process: addresses of some ranges, and operators from anywhere. */
export class ProbeAccess {
  readonly #ranges = new BlockList()
  readonly #app: Pick<Application, 'commands' | 'clock'>
  readonly #gate: Pick<OperatorGate, 'knows' | 'isOperator' | 'report'>
  readonly #addresses: Pick<RateLimiter, 'take'>

  /**
   * @param ranges addresses that need no token.
   * @param addresses limits all other callers without a token.
   */
  constructor(
    ranges: readonly AddressRange[],
    app: Pick<Application, 'commands' | 'clock'>,
    gate: Pick<OperatorGate, 'knows' | 'isOperator' | 'report'>,
    addresses: Pick<RateLimiter, 'take'>,
  ) {
    for (const { address, prefix, family } of ranges) this.#ranges.addSubnet(address, prefix, family)
    this.#app = app
    this.#gate = gate
    this.#addresses = addresses
  }

  /** @throws HttpError 403 for an address outside the ranges without an operator's token, 429. */
  async require(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (this.#isInRange(request.socket.remoteAddress)) return
    if (!this.#gate.knows(this.#app, request)) limitAddress(this.#addresses, request)
    if (await this.#gate.isOperator(this.#app, request)) return
    if (bearerToken(request) !== null) this.#gate.report(request, response, 'wrong token')
    throw new HttpError(
      403,
      null,
      'This address is not among PROBE_ALLOW_CIDRS; send the token of an operator as Authorization: Bearer <token>',
    )
  }

  #isInRange(remoteAddress: string | undefined): boolean {
    if (remoteAddress === undefined) return false
    const address = remoteAddress.split('%', 1)[0]!
    // an IPv4 caller of a listener on both families is checked as what it is
    const mapped = /^::ffff:(\d+(?:\.\d+){3})$/i.exec(address)?.[1]
    const plain = mapped ?? address
    return this.#ranges.check(plain, isIPv4(plain) ? 'ipv4' : 'ipv6')
  }
}
