import { expect, test } from 'vitest'
import type { Application } from '../../../application/commands/application.ts'
import { catchUp } from '../../../application/payments/missed-notices.ts'
import type { CardProcessor } from '../../../application/ports/card-processor.ts'

const ID = 'a'.repeat(24)

test('notices are listed again from the first that could not be carried out, and the others are carried out', async () => {
  const notice = (noticeId: string, linkId: string) => ({ about: 'link_expired', noticeId, linkId, at: 0 })
  const sender = {
    kind: 'stripe',
    async *noticesSince() {
      yield { notices: [notice('evt_1', 'nobody’s')], until: 1 }
      yield { notices: [notice('evt_2', ID), notice('evt_3', 'nobody’s')], until: 2 }
      yield { notices: [], until: 3 }
    },
  } as unknown as CardProcessor
  const caughtUp: unknown[] = []
  const app = {
    randomness: { id: () => ID, commandId: () => ID },
    commands: {
      load: () => Promise.reject(new Error('unreadable')),
      execute: async (_decider: unknown, _id: string, command: unknown) => {
        caughtUp.push(command)
        return { events: [] }
      },
    },
  } as unknown as Application
  const failures: unknown[] = []
  const parts = { ended: new AbortController().signal, failed: (error: unknown) => failures.push(error) }
  expect(await catchUp(app, sender, 0, parts)).toBe(1)
  expect(caughtUp).toEqual([{ type: 'CaughtUp', processor: 'stripe', until: 1 }])
  expect(failures).toEqual([new Error('unreadable')])
})
