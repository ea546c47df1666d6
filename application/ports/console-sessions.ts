/** A session ends after so long without a request, and after so long in any case; milliseconds. */
export const IDLE_MS = 30 * 60_000
export const LONGEST_MS = 12 * 3_600_000

/** Sessions of the web console, by the secret that their cookies hold. */
export interface ConsoleSessions {
  /** Begins one. @param token what it was opened by. @returns its secret. */
  begin(token: string): Promise<string>
  /** The token of a session that goes on, which counts as seen; null: it has ended, or there was none. */
  tokenOf(secret: string): Promise<string | null>
  /** Takes a form of a session. @returns false where it was taken before, or the session has ended. */
  takeForm(secret: string, form: string): Promise<boolean>
  end(secret: string): Promise<void>
}
