import { afterAll } from 'vitest'
import { dropDatabases } from './service.ts'

// modules are loaded once for each worker, this one for each file
afterAll(dropDatabases)
