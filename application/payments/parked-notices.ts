import { isId } from '../../domain/kernel/ids.ts'
import { orThrow, type Rejection } from '../../domain/kernel/rejection.ts'
import type { Sealed } from '../../domain/kernel/sealed.ts'
import { paymentLink } from '../../domain/payments/links/payment-link.ts'
import { type ParkedNotice, processorNotice } from '../../domain/payments/processor/processor-notice.ts'
import { paymentSession } from '../../domain/payments/sessions/payment-session.ts'
import { subscription } from '../../domain/payments/subscriptions/subscription.ts'
import type { Application } from '../commands/application.ts'
import type { CommandContext } from '../commands/command-context.ts'
import { derivedId } from '../commands/event-registry.ts'
import { openAll, UNREADABLE } from '../commands/sealed-fields.ts'
import { employerSubject } from '../commands/sealing.ts'
import { changed, type Owned, within } from '../commands/verbs.ts'
import type { ProcessorNotice, UnreadNotice } from '../ports/card-processor.ts'
import { ERASED } from '../ports/personal-data.ts'
import { isAt, type NoticeSource, subscriptionAt } from './processor/notice-source.ts'
import { processorOf } from './processor/processor-of.ts'

/**
 * Keeps a signed notice that was not understood, once, where it names something of ours: an operator is alerted, and it is
 * read again when its work is. One that names nothing of ours is ignored.
 * @throws ProviderUnavailable: whose it is, the processor has to say.
 */
export async function parkNotice(
  app: Application,
  source: NoticeSource,
  notice: UnreadNotice,
  context: CommandContext,
): Promise<void> {
  const { personalData, vault, clock } = app
  const named = await firstOfOurs(app, source, notice.names)
  if (named === null) return
  const { tenant_id, environment, employer_id, about_id } = named
  const { noticeId, type, version, body } = notice
  const known = noticeId ?? personalData.fingerprint('processor_notice', body)
  const notice_id = derivedId(`${source.processor}/${known}`, processorNotice.category)
  const { state } = await app.commands.load(processorNotice, notice_id)
  // nothing is kept of a notice that was resolved, however often it comes
  if (state !== null && state.status !== 'not_understood') return
  const place = placeOf({ notice_id })
  const subject = employerSubject(personalData, employer_id)
  const [sealed] = await personalData.seal([{ subject, context: place, plaintext: body }])
  await vault.getOrPut(place, () => sealed!)
  const data = {
    notice_id,
    tenant_id,
    environment,
    employer_id,
    processor: source.processor,
    processor_notice_id: noticeId,
    type,
    version,
    about_id,
  }
  const command = { type: 'Park', data, at: clock.now() } as const
  orThrow(await app.commands.execute(processorNotice, notice_id, command, within(context, named)))
}

/** Where the vault keeps the body of a notice, sealed under the employer's data key. */
export function placeOf({ notice_id }: Pick<ParkedNotice, 'notice_id'>): string {
  return `processor-notice/${notice_id}`
}

interface Named extends Required<Owned> {
  readonly employer_id: string
  readonly about_id: string
}

/** What is of the source among ids that may be ours. */
async function firstOfOurs(
  app: Application,
  source: NoticeSource,
  names: readonly string[],
): Promise<Named | null> {
  for (const name of names) {
    const id = isId(name) ? name : await subscriptionAt(app, source, name)
    if (id === null) continue
    const [subscribed, link, session] = await Promise.all([
      app.commands.load(subscription, id),
      app.commands.load(paymentLink, id),
      app.commands.load(paymentSession, id),
    ])
    const sold = session.state
    const at = sold?.checkouts.map(({ processor }) => ({ ...sold, processor })) ?? []
    const found = [subscribed.state, link.state, ...at].find((one) => one && isAt(source, one))
    if (found) return { ...found, about_id: id }
  }
  return null
}

/**
 * What a parked notice tells, read again.
 * @returns why nothing, in words for operators.
 * @throws ProcessorNotConfigured
 */
export async function readAgain(app: Application, parked: ParkedNotice): Promise<ProcessorNotice | string> {
  const { vault, personalData } = app
  const sealed = await vault.get(placeOf(parked))
  if (sealed === null) return 'Its body is not kept any more'
  const [body] = await openAll(personalData, [{ value: sealed as Sealed, context: placeOf(parked) }])
  if (body === ERASED || body === UNREADABLE) return 'Its body was erased, or cannot be opened'
  const notice = processorOf(app, parked).readNotice?.(body!) ?? null
  if (notice === null) return 'The notice tells of nothing that is ours'
  return notice.about === 'unread' ? 'The notice is not understood' : notice
}

/** An operator has seen to a parked notice: it is not read again, and its work takes its body out of the vault. */
export function resolveNotice(
  app: Application,
  noticeId: string,
  note: string | null,
  context: CommandContext,
): Promise<ParkedNotice | Rejection> {
  const command = { type: 'Resolve', note, at: app.clock.now() } as const
  return changed(app, processorNotice, noticeId, command, context)
}
