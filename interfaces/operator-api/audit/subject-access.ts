import { z } from 'zod'
import { requireCurrent } from '../../../application/audit/subject-access/current-state.ts'
import { findSubjects, subjectAccess } from '../../../application/audit/subject-access/subject-access.ts'
import { ownerOf, SharedSubject } from '../../../application/audit/subject-access/subject-streams.ts'
import { isAgeRecipient, sealForRecipient } from '../../../infrastructure/crypto/age.ts'
import { byteStream, text } from '../../endpoints/fields.ts'
import { badRequest, endpoint, notFound, record } from '../host/api.ts'
import { AUDITING } from '../host/roles.ts'
import { namedSubjects, subjectsOf } from '../operations/named-subjects.ts'

export const subjectAccessEndpoints = [
  endpoint({
    operation: 'exportSubject',
    route: 'POST /subject-access',
    summary: 'Answer a person with everything that is kept about them, as a file sealed for one recipient',
    description:
      'Names whom as an erasure does. The answer is a file of the format age, sealed for `recipient`: only who holds the key of ' +
      'that recipient can open it, and the service does not have it. Inside are JSON lines, with nothing of anybody else. ' +
      'That it was asked for, by whom and why, is recorded first.',
    body: z.object({
      ...namedSubjects,
      reason: text().describe('Why: it is recorded. Names nobody: it is kept as it is'),
      recipient: z
        .string()
        .refine(isAgeRecipient, 'must be a recipient of age: age1 and 58 characters')
        .describe('For whom the file is sealed: public key of the format age, `age1…`'),
    }),
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
      const subjects = await subjectsOf(host, body)
      for (const subject of subjects) {
        if ((await app.personalData.keyGeneration(subject)) === null) {
          throw notFound('No such data subject', 'subject_not_found')
        }
      }
      const isOwner = subjects[0]!.startsWith('employer/')
      const owner = isOwner ? await ownerOf(app, subjects[0]!, signal) : null
      // of an owner that no event tells of, nothing in the log is known to be its own
      if (isOwner && owner === null) throw notFound('No such data subject', 'subject_not_found')
      const findings = await findSubjects(app, subjects, owner, signal).catch((error: unknown) => {
        throw error instanceof SharedSubject ? badRequest('subject', error.message, 'invalid_subject') : error
      })
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
      return sealForRecipient(recipient, inBytes(subjectAccess(app, findings, asked, signal)))
    },
  }),
]

async function* inBytes(lines: AsyncIterable<string>): AsyncGenerator<Buffer, void, undefined> {
  for await (const line of lines) yield Buffer.from(line)
}
