// @module-tag each-log
import { beforeAll, describe, expect, test } from 'vitest'
import { allEvents, employeeRecord, report, status } from '../support/core.ts'
import {
  type Answer,
  askOperator,
  callTool,
  operate,
  payrollRow,
  policyDefaults,
  type SeededTenant,
  seedAgent,
  seedEmployer,
  seedTenant,
  send,
} from '../support/seed.ts'
import { type SharedService, sharedService } from '../support/service.ts'

let service: SharedService
let one: SeededTenant
let two: SeededTenant

beforeAll(async () => {
  service = await sharedService()
  one = await seedTenant(service)
  two = await seedTenant(service)
})

const TWENTY = Array.from({ length: 20 }, (_, index) => index)

function ops(
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  return askOperator(service, method, path, body, headers)
}

describe('while a client or an agent is sending', () => {
  test('an employer that is unlinked is out of reach of the next request', async () => {
    const { employerId } = await seedEmployer(service, one)
    const { policy_id } = await operate(service, 'POST', '/policies', {
      ...policyDefaults(),
      employer_id: employerId,
      carrier_id: one.carrierId,
    })
    const { apiKey } = await seedAgent(service, {
      entity_type: 'payroll_company',
      entity_id: one.payrollCompanyId,
    })
    const submit = () =>
      callTool(service, apiKey, 'submit_payroll_data', {
        employer_id: employerId,
        policy_id,
        rows: [payrollRow()],
      })
    let unlinked = false
    let accepted = 0
    let refused = 0
    const sender = async () => {
      for (;;) {
        const sentAfterwards = unlinked
        const { result, error } = await submit()
        if (result) {
          expect(sentAfterwards).toBe(false)
          accepted += 1
        } else {
          expect(error?.code).toBe(-32002)
          refused += 1
          return
        }
      }
    }
    const operator = async () => {
      while (accepted < 12) await new Promise((resolve) => setImmediate(resolve))
      await operate(service, 'PATCH', `/employers/${employerId}`, { payroll_company_ids: [] })
      unlinked = true
    }
    await Promise.all([operator(), ...TWENTY.slice(0, 6).map(sender)])
    expect(refused).toBe(6)
    const files = (await allEvents(service, 'PayrollFileReceived')).filter(
      ({ data }) => data.employer_id === employerId,
    )
    expect(files).toHaveLength(accepted)
    await operate(service, 'PATCH', `/employers/${employerId}`, {
      payroll_company_ids: [one.payrollCompanyId],
    })
    expect((await submit()).result.status).toBe('submitted_and_validated')
  })

  test('a client that is deactivated and a credential that is revoked are refused from the next request on', async () => {
    const client = await operate(service, 'POST', '/api-clients', {
      tenant_id: one.tenantId,
      name: 'Short',
      environment: 'live',
      products: ['all'],
    })
    const agent = await seedAgent(service, { entity_type: 'employer', entity_id: one.employerId })
    const mine = {
      ...one,
      clientHeaders: { 'X-Client-ID': client.client_id, 'X-Client-Secret': client.client_secret },
    }
    let ended = false
    let answered = 0
    const reporter = async () => {
      for (;;) {
        const sentAfterwards = ended
        const { status: code } = await report(service, mine)
        if (code === 401) return
        expect([code, sentAfterwards]).toEqual([202, false])
        answered += 1
      }
    }
    const asker = async () => {
      for (;;) {
        const sentAfterwards = ended
        const { error } = await callTool(service, agent.apiKey, 'list_employer_policies', {
          employer_id: one.employerId,
        })
        if (error) {
          expect(error.code).toBe(-32001)
          return
        }
        expect(sentAfterwards).toBe(false)
        answered += 1
      }
    }
    const operator = async () => {
      while (answered < 20) await new Promise((resolve) => setImmediate(resolve))
      await Promise.all([
        operate(service, 'POST', `/api-clients/${client.client_id}/deactivate`, {}),
        ops('GET', '/clock').then(() =>
          send(`${service.mcpUrl}/api/v1/agents/${agent.credentialId}/revoke`, {
            method: 'POST',
            headers: { Authorization: `Bearer ${service.operatorToken}` },
          }),
        ),
      ])
      ended = true
    }
    await Promise.all([operator(), ...[reporter(), reporter(), asker(), asker()]])
  })

  test('changes of terms pin every file to the terms it was normalized under', async () => {
    let sending = true
    const changer = async () => {
      for (let n = 1; sending; n += 1) {
        const rates = (policyDefaults().rates as { rate_per_100: string }[]).map((rate) => ({
          ...rate,
          rate_per_100: String(n),
        }))
        await operate(service, 'PATCH', `/policies/${two.policyId}`, { rates })
      }
    }
    const changing = changer()
    const answers = await Promise.all(
      TWENTY.map(() => report(service, two, { employees: [employeeRecord({ gross_wages: 100 })] })),
    )
    sending = false
    await changing
    const processed = new Map(
      (await allEvents(service, 'PayrollFileProcessed')).map(({ data }) => [data.file_id, data]),
    )
    for (const { body } of answers) {
      const revision = Number(processed.get(body.file_id)?.policy_revision)
      const { state } = await operate(
        service,
        'GET',
        `/streams/policy-${two.policyId}/state?revision=${revision}`,
      )
      const rate = state.rates.find(
        ({ class_code, state: at }: { class_code: string; state: string }) =>
          class_code === '8810' && at === 'CA',
      )
      const shown = await status(service, two, body.file_id)
      expect(shown.body.phase_3.total_premium_cents).toBe(Math.round(Number(rate.rate_per_100) * 100))
    }
  })
})
