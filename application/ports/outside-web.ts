/** The answer of a partner's server. */
export interface OutsideAnswer {
  readonly statusCode: number
  readonly body: Buffer
}

/** Why nothing useful came; the message names no address. */
export class OutsideWebFailed extends Error {
  override readonly name = 'OutsideWebFailed'
}

/** Reads what others publish, at addresses that they name: hosts that are not public are not asked. */
export interface OutsideWeb {
  /**
   * Gets an https address; what it redirects to is not followed. It takes 10 seconds at the most, real time.
   * @param maxBytes of the body: a longer one is a failure.
   * @throws OutsideWebFailed; the reason of the signal when that aborts.
   */
  get(url: string, maxBytes: number, signal: AbortSignal): Promise<OutsideAnswer>
  /**
   * The TXT records of a name, each joined from its parts; none where there is no such name. 10 seconds at the most.
   * @throws OutsideWebFailed where the name servers do not say.
   */
  textRecords(name: string): Promise<readonly string[]>
}
