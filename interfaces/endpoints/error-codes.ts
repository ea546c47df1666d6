import { z } from 'zod'
import { REJECTION_CODES } from '../../domain/kernel/rejection-codes.ts'
import { type ErrorCode, HTTP_CODES, type HttpCode } from '../http/errors.ts'

/** All codes of refusals with what each says, by the alphabet. */
export const ERROR_CODES: readonly (readonly [code: ErrorCode, meaning: string])[] = (
  Object.entries({ ...HTTP_CODES, ...REJECTION_CODES }) as [ErrorCode, string][]
).sort(([a], [b]) => (a < b ? -1 : 1))

const code = <Code extends string>(codes: readonly Code[]) =>
  z.enum(codes as readonly [Code, ...Code[]]).describe('Stable; `doc_url` explains it')

/** What programs read of a refusal, in the error body of every host. */
export const machineReadable = {
  code: code(ERROR_CODES.map(([one]) => one)).meta({ id: 'ErrorCode' }),
  field: z
    .string()
    .optional()
    .describe('What is at fault, as it was sent; left out where that is no single field'),
  errors: z
    .array(
      z.object({ code: code(Object.keys(HTTP_CODES) as HttpCode[]), field: z.string(), message: z.string() }),
    )
    .optional()
    .describe('All that is wrong with the body or the query, 100 faults at the most'),
  doc_url: z.string().describe('The page that explains the code'),
}

/** The page that explains all codes, each under its own name. @param base path before all addresses of the host. */
export function errorsPage(title: string, base: string): string {
  const rows = ERROR_CODES.map(
    ([one, meaning]) =>
      `<dt id="${one}"><code>${one}</code></dt>\n<dd>${meaning.replaceAll(/`([^`]+)`/g, '<code>$1</code>')}.</dd>`,
  )
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}: codes of errors</title>
<link rel="icon" href="data:,">
</head>
<body>
<main>
<h1>Codes of errors</h1>
<p>Every refusal names one of these codes in <code>code</code>. The <a href="${base}/docs">description of this API</a>
says which statuses an operation answers.</p>
<dl>
${rows.join('\n')}
</dl>
</main>
</body>
</html>
`
}
