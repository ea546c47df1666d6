import { z } from 'zod'
import { fileStatus } from '../../../application/payroll/file-status.ts'
import { idOf } from '../../endpoints/fields.ts'
import { HttpError } from '../../http/errors.ts'
import { endpoint } from '../host/api.ts'

/** A phase that has not finished tells nothing but that; a failed one tells how far it came. */
function phase<Results extends z.ZodRawShape>(results: Results) {
  return z.union([
    z.object({ status: z.literal('pending') }),
    z.object({ status: z.enum(['complete', 'failed']), ...results }),
  ])
}

const FileStatus = z
  .object({
    file_id: z.string(),
    status: z.enum(['pending', 'NORMALIZED', 'failed']),
    error: z.string().optional().describe('Why; only of failed files'),
    created_at: z.string().meta({ format: 'date-time' }),
    updated_at: z.string().meta({ format: 'date-time' }),
    employee_count: z.int(),
    employer_id: z.string(),
    period: z
      .object({ start: z.string(), end: z.string() })
      .nullable()
      .describe('Null when the report named none'),
    phase_1: phase({ green_rows: z.int(), red_rows: z.int() }),
    phase_2: phase({ processed_rows: z.int() }),
    phase_3: phase({ total_premium_cents: z.int(), processed_rows: z.int() }),
  })
  .meta({ id: 'FileStatus' })

export const getFileStatus = endpoint({
  operation: 'getFileStatus',
  route: 'GET /files/status/{file_id}',
  summary: 'Read what became of a payroll file or an employee sync',
  params: z.object({ file_id: idOf('file') }),
  answers: { 200: FileStatus },
  errors: { 404: 'There is no file with this id within the client’s scope' },
  async handle({ host, caller, params }) {
    const status = await fileStatus(host.app, caller.client, params.file_id)
    if (status === null)
      throw new HttpError(404, 'File not found', 'There is no file with this file_id', {
        code: 'file_not_found',
      })
    return status
  },
})
