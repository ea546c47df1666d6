// npm run generate: writes what follows from the declarations of endpoints and settings: the clients' types and the
// tables of docs/reference and docs/auditors/security.md. With --check it writes nothing and fails when a file is not as it should be.

import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import { referenceOf } from './generate/api-reference.mjs'
import { clientTypesOf, eventTypesOf } from './generate/client-types.mjs'
import { errorCodeType, errorsPage } from './generate/errors-page.mjs'
import { withPersonalData } from './generate/personal-data.mjs'
import { pythonClientOf, pythonErrorCodes, pythonEventsOf } from './generate/python-types.mjs'
import { settingsPage } from './generate/settings-page.mjs'
import { webhooksPage } from './generate/webhooks-page.mjs'
import { wordsPage } from './generate/words-page.mjs'
import { RULES } from './language/rules.mjs'
import { withRooms } from './rooms.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const isCheck = process.argv.includes('--check')

/** Loads a module of the project, which is TypeScript. */
async function load(path) {
  const outfile = join(root, 'node_modules/.cache/generate', `${path.replaceAll('/', '-')}.mjs`)
  await build({
    absWorkingDir: root,
    entryPoints: [path],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20.19',
    packages: 'external',
    logLevel: 'warning',
  })
  try {
    return await import(pathToFileURL(outfile).href)
  } finally {
    await rm(outfile)
  }
}

const { descriptions, eventDescription } = await load('interfaces/descriptions.ts')
const events = eventDescription()
const { keptTexts } = await load('interfaces/personal-data-table.ts')
const { settingsReference } = await load('infrastructure/config/settings-reference.ts')
const { core, operator, payments } = descriptions()
const { ERROR_CODES } = await load('interfaces/endpoints/error-codes.ts')
const files = {
  'docs/developers/architecture.md': withRooms(
    await readFile(join(root, 'docs/developers/architecture.md'), 'utf8'),
  ),
  'clients/node/core-api.ts': await clientTypesOf(core, 'coreOperations'),
  'clients/node/payments-api.ts': await clientTypesOf(payments, 'paymentsOperations'),
  'clients/node/error-codes.ts': errorCodeType(ERROR_CODES),
  'clients/node/webhook-events.ts': await eventTypesOf(events),
  'clients/python/compstream/core_api.py': pythonClientOf(core, 'CoreClient'),
  'clients/python/compstream/payments_api.py': pythonClientOf(payments, 'PaymentsClient'),
  'clients/python/compstream/error_codes.py': pythonErrorCodes(ERROR_CODES),
  'clients/python/compstream/webhook_events.py': pythonEventsOf(events),
  'docs/reference/core-api.md': referenceOf(core),
  'docs/reference/operator-api.md': referenceOf(operator),
  'docs/reference/payments-api.md': referenceOf(payments),
  'docs/reference/webhooks.md': webhooksPage(events),
  'docs/reference/errors.md': errorsPage(ERROR_CODES),
  'docs/reference/settings.md': settingsPage(settingsReference()),
  'docs/developers/words.md': wordsPage(RULES),
  'docs/auditors/security.md': withPersonalData(
    await readFile(join(root, 'docs/auditors/security.md'), 'utf8'),
    keptTexts(),
  ),
}

let outdated = 0
for (const [name, text] of Object.entries(files)) {
  const path = join(root, name)
  const present = await readFile(path, 'utf8').catch(() => null)
  if (present === text) continue
  outdated += 1
  if (isCheck) {
    console.error(`${name} is not as the declarations say: run npm run generate`)
  } else {
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, text)
    console.log(name)
  }
}
if (isCheck && outdated > 0) process.exitCode = 1
