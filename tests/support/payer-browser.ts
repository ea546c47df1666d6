import { mkdir, readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { chromium } from 'playwright-core'
import { browserPath } from './browser.ts'

/** Where pictures of pages are kept, for people to look at. */
const PICTURES = 'node_modules/.cache/payer-pages'
const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js')
/** The rules of WCAG 2.2, A and AA, and what else is good practice. */
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']

/** How pages are looked at. At 200 % a screen has half as many pixels of the page's own. */
export const VIEWS = {
  desktop: { viewport: { width: 1280, height: 900 } },
  phone: { viewport: { width: 375, height: 812 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true },
  dark: { viewport: { width: 1280, height: 900 }, colorScheme: 'dark' },
  'dark-phone': { viewport: { width: 375, height: 812 }, colorScheme: 'dark' },
  zoomed: { viewport: { width: 640, height: 450 }, deviceScaleFactor: 2 },
} as const satisfies Record<string, BrowserContextOptions>
export type View = keyof typeof VIEWS

/** A browser for pages of payers. */
export interface PayerBrowser {
  /** Opens an address in a context of its own. What its scripts and policies complain of is kept in `complaints`. */
  open(url: string, view?: View, options?: BrowserContextOptions): Promise<Opened>
  close(): Promise<void>
}

export interface Opened {
  readonly page: Page
  readonly complaints: string[]
  /** Addresses of everything that was asked for. */
  readonly asked: string[]
  close(): Promise<void>
}

/** @param hosts further names that the browser takes for this machine. */
export async function startPayerBrowser(hosts: readonly string[] = []): Promise<PayerBrowser> {
  const browser: Browser = await chromium.launch({
    executablePath: browserPath!,
    args: [
      ...['--no-sandbox', '--disable-gpu', '--disable-quic', '--disable-background-networking'],
      ...['--disable-component-update', '--disable-features=HttpsUpgrades'],
      `--host-resolver-rules=${hosts.map((name) => `MAP ${name} 127.0.0.1`).join(', ')}`,
    ],
  })
  return {
    async open(url, view = 'desktop', options = {}) {
      const context = await browser.newContext({ ...VIEWS[view], ...options })
      const page = await context.newPage()
      const [complaints, asked]: string[][] = [[], []]
      page.on('console', (message) => {
        if (message.type() === 'error' || message.type() === 'warning') complaints!.push(message.text())
      })
      page.on('pageerror', (error) => complaints!.push(String(error)))
      page.on('request', (request) => asked!.push(request.url()))
      await page.goto(url)
      return { page, complaints: complaints!, asked: asked!, close: () => context.close() }
    },
    close: () => browser.close(),
  }
}

const PICTURE_ATTEMPTS = 3

/** Takes a picture of a page. @param fullPage false: of what its window shows. */
export async function picture(page: Page, name: string, fullPage = true): Promise<void> {
  await mkdir(PICTURES, { recursive: true })
  const path = join(PICTURES, `${name}.png`)
  for (let attempt = 1; ; attempt += 1) {
    try {
      await page.screenshot({ path, fullPage })
      return
    } catch (error) {
      // a busy browser sometimes has no frame to show
      const passes = error instanceof Error && error.message.includes('Unable to capture screenshot')
      if (!passes || attempt === PICTURE_ATTEMPTS) throw error
    }
  }
}

/** What axe finds wrong with a page, one line each. */
export async function faultsOf(page: Page): Promise<readonly string[]> {
  // the page's policy lets no script in but its own; this comes by the protocol of the browser
  await page.evaluate(await readFile(AXE, 'utf8'))
  const { violations } = await page.evaluate<AxeResults>(
    `axe.run(document, { runOnly: ${JSON.stringify(RULES)} })`,
  )
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 200)} ${failureSummary}`),
  )
}

interface AxeResults {
  readonly violations: readonly {
    readonly id: string
    readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[]
  }[]
}

/** How far a page goes beyond the width of its window, in pixels. */
export function overflowOf(page: Page): Promise<number> {
  return page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
}
