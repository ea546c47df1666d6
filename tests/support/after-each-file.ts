import { afterAll } from 'vitest'
import { dropDatabases } from './service.ts'
import { patientDeadlines } from './technical-deadlines.ts'

// modules are loaded once for each worker, this one for each file
patientDeadlines()
afterAll(dropDatabases)
