import { expect, it } from 'vitest'
import { shown as shownAlert } from '../../../application/operations/operator-alerts.ts'
import { shown } from '../../../interfaces/endpoints/shown.ts'
import { alertEndpoints } from '../../../interfaces/operator-api/operations/alerts.ts'

const row = (kind: string): Parameters<typeof shownAlert>[0] =>
  ({
    count: 1,
    times: 1,
    alert_id: 'a'.repeat(24),
    kind,
    tenant_id: null,
    environment: null,
    about: { thing_id: 'x' },
    raised_at: '1970-01-01T00:00:00.000Z',
    acknowledged_at: null,
    acknowledged_by: null,
    note: null,
    seq: 1n,
  }) as never

it.each(['of_a_later_version', 'constructor'])(
  'an alert of the unknown kind %s is listed like others',
  async (kind) => {
    const list = alertEndpoints.find(({ operation }) => operation === 'listAlerts')!
    const alerts = [row(kind), row('policy_not_activated')].map(shownAlert)
    const [unknown, known] = (await shown(list, 200, alerts)) as readonly { kind: string; message: string }[]
    expect(unknown).toMatchObject({ kind, status: 'open', message: expect.stringContaining('does not know') })
    expect(known).toMatchObject({ kind: 'policy_not_activated', message: expect.stringContaining('paid') })
  },
)
