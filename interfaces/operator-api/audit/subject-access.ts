import { z } from 'zod'
import { requireCurrent } from '../../../application/audit/subject-access/current-state.ts'
import { findSubjects, subjectAccess } from '../../../application/audit/subject-access/subject-access.ts'
import {
  type Owner,
  ownerNamed,
  ownerOf,
  SharedSubject,
} from '../../../application/audit/subject-access/subject-streams.ts'
import { isAgeRecipient, sealForRecipient } from '../../../infrastructure/crypto/age.ts'
import { byteStream, text } from '../../endpoints/fields.ts'
import { CallSlots } from '../../http/call-slots.ts'
import { badRequest, endpoint, notFound, type OperatorHost, record } from '../host/api.ts'
import { AUDITING } from '../host/roles.ts'
import { namedSubjects, subjectsOf } from '../operations/named-subjects.ts'

/** Answers that a process makes at once, whoever asks: each reads the whole log on a connection that requests use too. */
const MOST_AT_ONCE = 2
const WAIT_MS = 5_000
const slots = new CallSlots(
  MOST_AT_ONCE,
  WAIT_MS,
  `At most ${MOST_AT_ONCE} subject accesses are answered at once`,
)

/** What a request says. */
export const subjectAccessBody = z.object({
  ...namedSubjects,
  reason: text().describe('Why: it is recorded. Names nobody: it is kept as it is'),
  recipient: z
    .string()
    .refine(isAgeRecipient, 'must be a recipient of age: age1 and 58 characters')
    .describe('For whom the file is sealed: public key of the format age, `age1…`'),
})

/** The data subjects that a request names. @throws HttpError 400, 404. */
export async function knownSubjects(
  host: OperatorHost,
  named: Parameters<typeof subjectsOf>[1],
): Promise<readonly string[]> {
  const subjects = await subjectsOf(host, named, 'name')
  for (const subject of subjects) {
    if ((await host.app.personalData.keyGeneration(subject)) === null) throw noSuchSubject()
  }
  return subjects
}

const noSuchSubject = () => notFound('No such data subject', 'subject_not_found')

export const subjectAccessEndpoints = [
  endpoint({
    operation: 'exportSubject',
    route: 'POST /subject-access',
    summary: 'Answer a person with everything that is kept about them, as a file sealed for one recipient',
    description:
      'Names whom as an erasure does. The answer is a file of the format age, sealed for `recipient`: only who holds the key of ' +
      'that recipient can open it, and the service does not have it. Inside are JSON lines, with nothing of anybody else. ' +
      'That it was asked for, by whom and why, is recorded first.',
    body: subjectAccessBody,
    example: {
      subject: 'person/66838f2a5b1c4d7e9f012345',
      reason: 'Request of 3 March',
      recipient: 'age15y64ckfnjdt9jwzmcf3ljpxn6ykyt5y6xx87y59ewr3tg7x6a4zqxwewrg',
    },
    answers: { 200: byteStream() },
    produces: 'application/octet-stream',
    errors: {
      400: 'Whom it is about is not named, or twice; `reason` or `recipient` is missing',
      404: 'There is no such data subject',
      429: 'Too many requests without the token of an operator; or as many files are made at once as may be',
    },
    roles: AUDITING,
    command: { name: 'subject-access export', operands: ['subject'] },
    refuses: {
      400: ['invalid_subject'],
      404: ['bank_connection_not_found', 'employer_not_found', 'subject_not_found'],
    },
    async handle(call) {
      const { host, body, caller, requestId, signal } = call
      const { app } = host
      const { reason, recipient } = body
      const subjects = await knownSubjects(host, body)
      await requireCurrent(app, await app.log.head())
      const release = once(await slots.acquire('all'))
      // a caller that goes away may never ask for the first byte
      if (signal.aborted) release()
      signal.addEventListener('abort', release)
      try {
        const owner = await ownerAmong(app, body, subjects[0]!, signal)
        const findings = await findSubjects(app, subjects, owner, signal)
        await requireCurrent(app, findings.until)
        for (const subject of subjects) {
          await record(call, 'reveal', subject, {
            as: 'subject access',
            streams: findings.streams.length,
            recipient,
            reason,
          })
        }
        const asked = { operator_id: caller.operator_id, request_id: requestId }
        const lines = subjectAccess(app, findings, asked, signal)
        return sealForRecipient(recipient, inBytes(lines, release))
      } catch (error) {
        release()
        throw error instanceof SharedSubject ? badRequest('subject', error.message, 'invalid_subject') : error
      }
    },
  }),
]

/** Whose the subject is; null of a person. @throws HttpError 404 */
async function ownerAmong(
  app: OperatorHost['app'],
  named: z.output<typeof subjectAccessBody>,
  subject: string,
  signal: AbortSignal,
): Promise<Owner | null> {
  if (!subject.startsWith('employer/')) return null
  const owner = ownerNamed(named) ?? (await ownerOf(app, subject, signal))
  // of an owner that no event tells of, nothing in the log is known to be its own
  if (owner === null) throw noSuchSubject()
  return owner
}

function once(work: () => void): () => void {
  let isDone = false
  return () => {
    if (!isDone) work()
    isDone = true
  }
}

async function* inBytes(
  lines: AsyncIterable<string>,
  done: () => void,
): AsyncGenerator<Buffer, void, undefined> {
  try {
    for await (const line of lines) yield Buffer.from(line)
  } finally {
    done()
  }
}
