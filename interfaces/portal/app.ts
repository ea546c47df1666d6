import type { Express } from 'express'
import { generalWord } from '../http/errors.ts'
import { createHost, type HostSettings } from '../http/server.ts'
import { writePage } from './page.ts'

/** The host of hosted pages. No page exists yet: every path is a page that says so, with 404. */
export function createPortalApp(settings: Omit<HostSettings, 'routes' | 'writeError'>): Express {
  return createHost({
    ...settings,
    routes: [],
    writeError: (response, status, error, message) =>
      writePage(response, status, error ?? generalWord(status), message),
  })
}
