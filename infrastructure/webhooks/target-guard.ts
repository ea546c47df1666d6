import type { AddressRange } from '../config/config.ts'
import { HostResolver, HostUnknown } from './resolver.ts'
import { AllowedAddresses, hostOf } from './target-addresses.ts'

/** The names of this machine, which no name server is asked for (RFC 6761). */
const LOCAL = /^(.+\.)?localhost$/i
const LOOPBACK = ['127.0.0.1', '::1']

/** A target that must not be dialled; the message names no address. */
export class TargetRefused extends Error {
  override readonly name = 'TargetRefused'
}

/** Finds the addresses that a host may be dialled at: all that it has, or none. */
export class TargetGuard {
  readonly #allowed: AllowedAddresses
  readonly #resolver: Pick<HostResolver, 'addressesOf'>

  /** @param ranges that are allowed although they are not public. */
  constructor(
    ranges: readonly AddressRange[],
    resolver: Pick<HostResolver, 'addressesOf'> = new HostResolver(),
  ) {
    this.#allowed = new AllowedAddresses(ranges)
    this.#resolver = resolver
  }

  /**
   * @param hostname as a URL has it.
   * @returns the addresses to dial, at least one.
   * @throws TargetRefused where one of them is not allowed, or there is none.
   */
  async addressesOf(hostname: string): Promise<readonly string[]> {
    const host = hostOf(hostname)
    const isAllowed = (address: string) => this.#allowed.has(address)
    const found = LOCAL.test(host) ? LOOPBACK.filter(isAllowed) : await this.#resolve(host)
    if (found.length > 0 && found.every(isAllowed)) return found
    throw new TargetRefused('Its host has an address that is not public')
  }

  async #resolve(host: string): Promise<readonly string[]> {
    try {
      return await this.#resolver.addressesOf(host)
    } catch (error) {
      if (error instanceof HostUnknown) throw new TargetRefused(`Its host was not found: ${error.message}`)
      throw error
    }
  }
}
