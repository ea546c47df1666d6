import { newAgeKeys } from '../../../infrastructure/crypto/age.ts'
import { check } from '../../endpoints/faults.ts'
import { sendStream } from '../../http/byte-stream.ts'
import { HttpError } from '../../http/errors.ts'
import { html } from '../../portal/html.ts'
import { note } from '../../portal/pieces.ts'
import { knownSubjects, subjectAccessBody } from '../audit/subject-access.ts'
import type { OperatorHost } from '../host/api.ts'
import { type Caller, call, type OperatorEndpoints, type Texts } from './calls.ts'
import { bodyOfForm, fieldsOf, input } from './fields.ts'
import { type ConsolePage, proofField } from './layout.ts'
import type { Session } from './session.ts'

/** Answers a person with everything that is kept about them. A file is sealed; its key is shown before it, once. */

export const SUBJECT_ACCESS = 'POST /subject-access'
const PATH = '/console/subject-access'
const FILE = `${PATH}/file`
const TITLE = 'Subject access'
const OWN_KEY = 'recipient'

/** Asks about whom, and why. @param query what is known of that already. @throws HttpError 403 for other roles. */
export function subjectAccessPage(
  endpoints: OperatorEndpoints,
  session: Session,
  query: Texts,
  refused: string | null = null,
): ConsolePage {
  const fields = formOf(endpoints)
  const asked = fields.map((field) =>
    // without one, the next page makes the keys
    input(field.name === OWN_KEY ? { ...field, isRequired: false } : field, query[field.name]),
  )
  return {
    title: TITLE,
    ...(refused !== null && { status: 400 }),
    body: html`<div class="card stack"><h1>${TITLE}</h1>
${refused === null ? null : note('bad', 'Nothing was asked for', html`<p>${refused}</p>`, 'alert')}
<p class="text">Everything that is kept about one person, as a file that only the holder of a key opens. Name the person by data subject, or by an employer and what its reports say. Without a recipient, the next page shows a new key, once. That it was asked for is recorded with your reason.</p>
<form method="post" action="${PATH}">${proofField(session, PATH)}
${asked}
<div class="do-all"><button>Go on</button></div></form></div>`,
  }
}

/** Shows the key, where it is made here, and leads to the file, unless what was asked would be refused. @param typed what was asked. */
export async function subjectKeyPage(
  endpoints: OperatorEndpoints,
  session: Session,
  hostOf: Caller['hostOf'],
  typed: Texts,
): Promise<ConsolePage> {
  const fields = formOf(endpoints)
  if (!typed.reason?.trim())
    return subjectAccessPage(endpoints, session, typed, 'reason is required: say why')
  const keys = typed[OWN_KEY]?.trim() ? null : newAgeKeys()
  const sent: Texts = { ...typed, ...(keys && { [OWN_KEY]: keys.recipient }) }
  const refused = await refusalOf(hostOf(), bodyOfForm(fields, sent))
  if (refused !== null) return subjectAccessPage(endpoints, session, typed, refused)
  const hidden = fields
    .map(({ name }) => [name, sent[name]?.trim() ?? ''] as const)
    .filter(([, text]) => text !== '')
    .map(([name, text]) => html`<input type="hidden" name="${name}" value="${text}">`)
  const key =
    keys &&
    note(
      'warn',
      'The key is shown this once, and kept nowhere',
      html`<p><code id="key">${keys.identity}</code></p><p>Give it to the person apart from the file. Without it nobody opens the file.</p>`,
    )
  return {
    title: TITLE,
    body: html`<div class="card stack"><h1>${TITLE}</h1>
${key}<p>The file is sealed for <code>${sent[OWN_KEY]}</code>.</p>
<form method="post" action="${FILE}">${proofField(session, FILE)}${hidden}
<div class="do-all"><button>Download the sealed file</button> <a href="${PATH}">Ask for something else</a></div></form></div>`,
  }
}

/** Answers with the sealed file. @throws HttpError for what the endpoint refuses. */
export async function answerSubject(
  endpoints: OperatorEndpoints,
  caller: Caller,
  typed: Texts,
): Promise<void> {
  const fields = formOf(endpoints)
  const endpoint = endpoints.of(SUBJECT_ACCESS)
  const { status, data } = await call(caller, endpoint, {}, {}, bodyOfForm(fields, typed))
  caller.response.setHeader('Content-Disposition', 'attachment; filename="subject-access.age"')
  await sendStream(caller.response, status, endpoint.produces!, data as AsyncIterable<Buffer>)
}

/** Why a request would be refused, as far as nothing has to be read for it that is kept about anybody; null: not so far. */
async function refusalOf(
  host: OperatorHost,
  sent: Readonly<Record<string, unknown>>,
): Promise<string | null> {
  const checked = check(subjectAccessBody, sent)
  if ('faults' in checked) {
    const { field, message } = checked.faults[0]!
    return `${field} ${message}`
  }
  try {
    await knownSubjects(host, checked.value)
    return null
  } catch (error) {
    if (error instanceof HttpError && [400, 404].includes(error.status)) return error.message
    throw error
  }
}

/** The fields of the request. @throws HttpError 403 where it is not for the role. */
function formOf(endpoints: OperatorEndpoints) {
  if (!endpoints.has(SUBJECT_ACCESS)) throw new HttpError(403, null, 'Subject access is not for your role.')
  return fieldsOf(endpoints.of(SUBJECT_ACCESS).body)
}
