import { z } from 'zod'
import { MOST_DEBIT_CENTS } from '../../../../application/banking/debits/api-debits.ts'
import {
  type AskedCollection,
  collect,
  prepareCollection,
} from '../../../../application/banking/debits/collections.ts'
import { type DebitCollection, MOST_ENTRIES } from '../../../../domain/banking/debits/debit-collection.ts'
import { centsOf } from '../../../../domain/kernel/money.ts'
import { isRejection } from '../../../../domain/kernel/rejection.ts'
import { createOrFind } from '../../../endpoints/creations.ts'
import { Answer } from '../../../endpoints/endpoint.ts'
import { id, reference, text, wrongType } from '../../../endpoints/fields.ts'
import { endpoint, keyed } from '../../host/api.ts'
import { bodyKey } from './ach-debits.ts'
import { AT_CREATION } from './ach-transaction-schemas.ts'

const DOLLARS = 'must be a number of dollars from 0.01 to 99999999.99, without fractions of a cent'

/** Dollars with two decimals at the most, as whole cents. */
function dollars() {
  return z
    .number(wrongType(DOLLARS))
    .refine((value) => isAmount(centsOf(value)), DOLLARS)
    .transform((value) => centsOf(value)!)
    .meta({ override: { type: 'number', minimum: 0.01, maximum: MOST_DEBIT_CENTS / 100 } })
}

function isAmount(cents: number | null): boolean {
  return cents !== null && cents >= 1 && cents <= MOST_DEBIT_CENTS
}

const newCollection = z.object({
  employerId: reference(),
  bankAccountId: reference().describe('An ACH account, or a bank account that is tied to exactly one'),
  policyCollections: z
    .array(
      z.object({
        policyId: reference(),
        totalInDollars: dollars(),
        description: text(),
        idempotencyKey: bodyKey(),
      }),
    )
    .min(1)
    .max(MOST_ENTRIES)
    .refine((entries) => areDistinct(entries.map(({ policyId }) => policyId)), 'must not name a policy twice')
    .refine(
      (entries) => areDistinct(entries.map(({ idempotencyKey }) => idempotencyKey)),
      'must not have an idempotencyKey twice',
    )
    .describe('One entry for each policy'),
})

function areDistinct(values: readonly string[]): boolean {
  return new Set(values).size === values.length
}

const AcceptedCollection = z
  .object({
    success: z.literal(true),
    collection_id: id(),
    accepted: z.int().describe('Entries'),
    transactions: z.array(
      z.object({
        transaction_id: id(),
        policy_id: id(),
        amount: z.int().describe('Cents'),
        status: z.literal('PENDING').describe(AT_CREATION),
      }),
    ),
  })
  .meta({ id: 'AcceptedAchCollection' })

export const achCollectionEndpoints = [
  endpoint({
    operation: 'createAchCollection',
    route: 'POST /ach/collections',
    summary: 'Debit one account for several policies of an employer, all of them or none',
    description:
      'One debit for each entry, of the carrier of its policy, with the purpose `paygo`. The same collection again is ' +
      'answered as the first time, with 202; in another one an entry whose key is known is its first transaction.',
    body: newCollection,
    idempotent: 'The same key and body are answered as the first time, with 202; another body is 409',
    answers: { 202: AcceptedCollection },
    errors: {
      403: 'The key is not for payments, or does not reach the employer or the carrier of a policy',
      404: 'Employer, account or a policy is not there; the message names which',
      409: 'The account is disabled, or a key was used for another debit: `id`',
    },
    refuses: {
      400: ['account_mismatch', 'policy_mismatch'],
      403: ['out_of_scope'],
      404: ['ach_account_not_found', 'employer_not_found', 'policy_not_found'],
      409: ['account_disabled', 'account_unlisted', 'collection_refused', 'debit_key_reused'],
    },
    async handle(call) {
      const { host, caller, body } = call
      const { app } = host
      const { client } = caller
      const asked: AskedCollection = {
        employerId: body.employerId,
        bankAccountId: body.bankAccountId,
        entries: body.policyCollections.map(({ policyId, totalInDollars, description, idempotencyKey }) => ({
          policyId,
          amountCents: totalInDollars,
          description,
          key: idempotencyKey,
        })),
      }
      const answer = await createOrFind(keyed(call), 'POST /ach/collections', {
        prepare: (context) => prepareCollection(app, client, asked, context),
        async create(context, prepared) {
          const collected = await collect(app, client, asked, prepared, context)
          if (isRejection(collected)) return collected
          const { collection, isNew } = collected
          return { isNew, id: collection.collection_id, shown: shown(collection) }
        },
      })
      return isRejection(answer) ? answer : new Answer(202, answer.data, answer.options)
    },
  }),
]

function shown({ collection_id, entries }: DebitCollection) {
  return {
    success: true as const,
    collection_id,
    accepted: entries.length,
    transactions: entries.map(({ transaction_id, policy_id, amount_cents }) => ({
      transaction_id,
      policy_id,
      amount: amount_cents,
      status: 'PENDING' as const,
    })),
  }
}
