import { openDatabase } from '../../infrastructure/database/database.ts'
import { openPostgresEventLog } from '../../infrastructure/event-store/postgres/postgres-event-log.ts'
import { createTestDatabase } from '../support/database.ts'
import { eventLogContract } from './event-log.contract.ts'

eventLogContract('PostgreSQL', async () => {
  const test = await createTestDatabase()
  const databases: { close(): Promise<void> }[] = []
  return {
    open: async () => {
      const database = await openDatabase({ url: test.url })
      databases.push(database)
      return openPostgresEventLog({ database })
    },
    remove: async () => {
      for (const database of databases) await database.close()
      await test.drop()
    },
  }
})
