import { createHmac, randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import type { SharedService } from './service.ts'

type Service = Pick<SharedService, 'opsUrl' | 'operatorToken'>

/** A page of the console as it was answered. */
interface ConsoleAnswer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

/** Somebody at the console: asks with the cookie that the sign-in gave, and follows nothing by itself. */
export class ConsoleVisitor {
  readonly #service: Service
  cookie = ''

  constructor(service: Service) {
    this.#service = service
  }

  async ask(
    method: string,
    path: string,
    form?: Readonly<Record<string, string>>,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<ConsoleAnswer> {
    const answer = await fetch(`${this.#service.opsUrl}${path}`, {
      method,
      redirect: 'manual',
      headers: { ...(this.cookie && { Cookie: this.cookie }), ...headers },
      ...(form && { body: new URLSearchParams(form) }),
    })
    return { status: answer.status, headers: answer.headers, text: await answer.text() }
  }

  get(path: string): Promise<ConsoleAnswer> {
    return this.ask('GET', path)
  }

  /** @returns the value of `Set-Cookie`. */
  async signIn(token = this.#service.operatorToken): Promise<string> {
    const answer = await this.ask('POST', '/console/sign-in', { token, next: '/console/alerts' })
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/console/alerts'])
    const set = answer.headers.get('set-cookie')!
    this.cookie = set.split(';')[0]!
    return set
  }
}

/** The proof that stands in the form of a page which leads to an address. */
export function proofIn({ text }: ConsoleAnswer, action: string): string {
  const form = text.split('<form ').find((one) => one.includes(`action="${action.replaceAll('&', '&amp;')}"`))
  return /name="form" value="([^"]+)"/.exec(form ?? '')?.[1] ?? ''
}

/** The proof that the session of a cookie would put into a form: what somebody can make who has the cookie. */
export function formOf(cookie: string, action: string): string {
  const nonce = randomUUID()
  const secret = cookie.slice(cookie.indexOf('=') + 1)
  return `${nonce}.${createHmac('sha256', secret).update(`form ${nonce} ${action}`).digest('base64url')}`
}
