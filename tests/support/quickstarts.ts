import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { expect } from 'vitest'
import { seedTenant } from './seed.ts'
import type { ServiceAddresses } from './service.ts'

/** The quickstarts of the clients, as their READMEs have them. */

/** What a program wrote, and how it ended. */
interface Ran {
  readonly code: unknown
  readonly stdout: string
  readonly stderr: string
}

/** The first example of a page in a language. */
export async function exampleIn(page: string, language: string): Promise<string> {
  return new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``).exec(await readFile(page, 'utf8'))![1]!
}

/** Runs a program that is read from standard input. */
export function ran(
  program: string,
  args: readonly string[],
  code: string,
  options: { readonly cwd?: string; readonly env: Record<string, string | undefined> },
): Promise<Ran> {
  return new Promise((resolve) => {
    const started = execFile(program, args, options, (error, stdout, stderr) =>
      resolve({ code: error?.code ?? 0, stdout, stderr }),
    )
    started.stdin!.end(code)
  })
}

/** The settings of a quickstart: a policy that is to be sold in the sandbox. */
export async function quickstartOf(service: ServiceAddresses): Promise<Record<string, string>> {
  const tenant = await seedTenant(service, { environment: 'sandbox', policy: { status: 'in_progress' } })
  return {
    COMPSTREAM_URL: service.coreUrl,
    COMPSTREAM_PAYMENTS_URL: service.paymentsUrl,
    COMPSTREAM_CLIENT_ID: tenant.clientId,
    COMPSTREAM_CLIENT_SECRET: tenant.clientSecret,
    EMPLOYER_FEIN: tenant.fein,
    POLICY_NUMBER: tenant.policyNumber,
    WEBHOOK_URL: 'https://127.0.0.1:64999/webhooks',
  }
}

/** A policy was sold, payroll reported, an account debited, and what was missed is sent again. */
export function expectQuickstart({ code, stdout, stderr }: Ran): void {
  expect([code, stderr]).toEqual([0, ''])
  expect(stdout).toMatch(/^pay at http\S+$/m)
  expect(stdout).toMatch(/^payroll NORMALIZED [\s\S]*'?green_rows'?: 1/m)
  expect(stdout).toMatch(/^debit [0-9a-f]{24} pending$/m)
  expect(stdout).toMatch(/^missed payment\.completed [0-9a-f]{24}$/m)
  expect(stdout).toMatch(/^resent 1$/m)
}
