import type { Request, Response } from 'express'
import { OPERATOR_ROLES, type OperatorRole } from '../../../domain/access/operators.ts'
import type { Endpoint } from '../../endpoints/endpoint.ts'
import type { OperatorGate } from '../../http/bearer.ts'
import { Costs } from '../../http/costs.ts'
import { type ErrorWriter, generalWord, HttpError } from '../../http/errors.ts'
import type { RateLimits } from '../../http/rate-limit.ts'
import { type Guard, queryOf, type Route } from '../../http/server.ts'
import { html } from '../../portal/html.ts'
import { readForm } from '../../portal/own-posts.ts'
import type { OperatorHost } from '../host/api.ts'
import { rolesOf } from '../host/roles.ts'
import { confirmPage, doingsOf, done } from './action-pages.ts'
import { bankFileLinesPage } from './bank-file-lines-page.ts'
import { type Caller, OperatorEndpoints, type Texts } from './calls.ts'
import { type ConsolePage, leadTo, type Place, writeConsolePage } from './layout.ts'
import { listsPage, searchPage, signInPage } from './other-pages.ts'
import { overviewPage } from './overview-page.ts'
import { listPage, lookUpPage, thingPage } from './resource-pages.ts'
import { resources } from './resources.ts'
import { ConsoleAccess, type Session } from './session.ts'
import { storyPage } from './story-page.ts'
import { answerSubject, SUBJECT_ACCESS, subjectAccessPage, subjectKeyPage } from './subject-access-page.ts'

interface ConsoleSettings {
  readonly endpoints: readonly Endpoint<OperatorHost>[]
  readonly hostOf: () => OperatorHost
  readonly gate: OperatorGate
  readonly limits: RateLimits
}

interface Console {
  readonly routes: readonly Route[]
  readonly guard: Guard
}

/** A request of somebody who is signed in. */
interface Visit extends Caller {
  readonly session: Session
  readonly query: Texts
  /** Those for the role. */
  readonly endpoints: OperatorEndpoints
}

/** The web console: pages over the declared endpoints of the operator API. */
export function createConsole({ endpoints: declared, hostOf, gate, limits }: ConsoleSettings): Console {
  const endpoints = new OperatorEndpoints(declared)
  const access = new ConsoleAccess(
    hostOf().services.consoleSessions,
    {
      operatorOf: (token) => gate.operatorOf(hostOf().app, token),
      report: (...refused) => gate.report(...refused),
    },
    limits.addresses,
  )
  const there = resources.filter(({ list, show }) => endpoints.has(list ?? show!))
  const doings = doingsOf(endpoints, there)
  const seenBy = Object.fromEntries(
    OPERATOR_ROLES.map((role) => {
      const own = new OperatorEndpoints(declared, role)
      const seen = there.filter(
        ({ list, show, isHidden, isListed }) => !isHidden && !isListed && own.has(list ?? show!),
      )
      const places: readonly Place[] = own.has(SUBJECT_ACCESS)
        ? [...placesOf(seen), { href: '/console/subject-access', title: 'Subject access' }]
        : placesOf(seen)
      return [role, { endpoints: own, places }]
    }),
  ) as Readonly<Record<OperatorRole, { endpoints: OperatorEndpoints; places: readonly Place[] }>>

  /** A page for who is signed in, null where the answer is no page; others are led to the sign-in, and back where they asked for a page. */
  const page = (
    path: string,
    show: (visit: Visit) => Promise<ConsolePage | string | null>,
    method: 'GET' | 'POST' = 'GET',
  ) => ({
    method,
    path: `/console${path}`,
    handle: (request: Request, response: Response) =>
      Costs.during(limits, async (costs) => {
        const session = await access.sessionOf(request, response)
        if (session === null) {
          const next = method === 'GET' ? request.originalUrl : '/console'
          return leadTo(response, `/console/sign-in?${new URLSearchParams({ next }).toString()}`)
        }
        const { endpoints, places } = seenBy[session.operator.role]
        const visit = { request, response, costs, hostOf, session, token: session.token, endpoints }
        try {
          const shown = await show({ ...visit, query: Object.fromEntries(queryOf(request)) })
          if (shown === null) return
          if (typeof shown === 'string') leadTo(response, shown)
          else writeConsolePage(response, shown, session, places)
        } catch (error) {
          if (!(error instanceof HttpError)) throw error
          for (const [name, value] of Object.entries(error.headers)) {
            // the console has its own way to sign in
            if (name !== 'WWW-Authenticate') response.setHeader(name, value)
          }
          writeConsolePage(response, errorPage(error), session, places)
        }
      }),
  })
  const placed = (request: Request) => {
    const found = there.find(({ path }) => path === request.params.place)
    if (!found) throw new HttpError(404, null, 'The console has no such page.')
    return found
  }
  const shownBy = (path: string, names: readonly string[]) =>
    page(path, (visit) => {
      const keys = names.map((name) => String(visit.request.params[name]))
      const resource = placed(visit.request)
      const count = resource.show?.match(/\{/g)?.length ?? 0
      if (resource.show === undefined || count !== keys.length) {
        throw new HttpError(404, null, 'The console has no such page.')
      }
      return thingPage(visit.endpoints, visit, resource, keys, visit.query)
    })

  const routes: readonly Route[] = [
    page('', (visit) => overviewPage(visit.endpoints, visit)),
    {
      method: 'GET',
      path: '/console/sign-in',
      async handle(request, response) {
        const next = nextOf(queryOf(request).get('next'))
        if (await access.sessionOf(request, response)) return leadTo(response, next)
        writeConsolePage(response, signInPage(next, null))
      },
    },
    {
      method: 'POST',
      path: '/console/sign-in',
      async handle(request, response) {
        const { token = '', next } = await readForm(request)
        try {
          await access.signIn(request, response, token.trim())
        } catch (error) {
          if (!(error instanceof HttpError) || error.status !== 401) throw error
          return writeConsolePage(response, { ...signInPage(nextOf(next), error.message), status: 401 })
        }
        leadTo(response, nextOf(next))
      },
    },
    page(
      '/sign-out',
      async ({ request, response }) => {
        await access.requireForm(request, response, 'sign-out', (await readForm(request)).form)
        await access.signOut(request, response)
        return '/console/sign-in'
      },
      'POST',
    ),
    page(
      '/search',
      async (visit) => {
        const { q = '', form } = await readForm(visit.request)
        await access.requireForm(visit.request, visit.response, 'search', form, false)
        return searchPage(visit.endpoints, visit, there, q.trim())
      },
      'POST',
    ),
    page('/lists', async ({ endpoints: own }) =>
      listsPage(there.filter(({ isListed, list, show }) => isListed && own.has(list ?? show!))),
    ),
    page('/actions/:operation', async (visit) => {
      const { request, response, session, query } = visit
      const doing = doingOf(request)
      // the endpoint itself refuses as well
      gate.requireRole(session.operator, rolesOf(doing.endpoint), request, response)
      return confirmPage(endpoints, visit, session, doing, query)
    }),
    page(
      '/actions/:operation',
      async (visit) => {
        const { request, response, session, query } = visit
        const doing = doingOf(request)
        const { form, ...typed } = await readForm(request)
        await access.requireForm(request, response, request.originalUrl, form)
        try {
          return await done(visit, doing, query, typed)
        } catch (error) {
          if (!(error instanceof HttpError) || ![400, 404, 409].includes(error.status)) throw error
          const page = await confirmPage(endpoints, visit, session, doing, query, { error, typed })
          return { ...page, status: error.status }
        }
      },
      'POST',
    ),
    page('/subject-access', async ({ endpoints: own, session, query }) =>
      subjectAccessPage(own, session, query),
    ),
    page(
      '/subject-access',
      async ({ endpoints: own, request, response, session }) => {
        const { form, ...typed } = await readForm(request)
        await access.requireForm(request, response, '/console/subject-access', form)
        return subjectKeyPage(own, session, hostOf, typed)
      },
      'POST',
    ),
    page(
      '/subject-access/file',
      async (visit) => {
        const { form, ...typed } = await readForm(visit.request)
        await access.requireForm(visit.request, visit.response, '/console/subject-access/file', form)
        await answerSubject(visit.endpoints, visit, typed)
        return null
      },
      'POST',
    ),
    page('/:place', async (visit) => {
      const resource = placed(visit.request)
      if (resource.list !== undefined) return listPage(visit.endpoints, visit, resource, visit.query)
      const shows = endpoints.of(resource.show!)
      const names = Object.keys(shows.params?.shape ?? {})
      if (names.length === 0) return thingPage(visit.endpoints, visit, resource, [], visit.query)
      const keys = names.map((name) => visit.query[name]?.trim() ?? '')
      if (keys.some((key) => key === '')) return lookUpPage(resource, shows)
      return `/console/${resource.path}/${keys.map(encodeURIComponent).join('/')}`
    }),
    page('/bank-files/:file/lines', (visit) =>
      bankFileLinesPage(visit.endpoints, visit, String(visit.request.params.file), visit.query),
    ),
    page('/stories/:kind/:id', (visit) => {
      const { kind, id } = visit.request.params
      return storyPage(visit.endpoints, visit, { kind: String(kind), id: String(id) }, visit.query)
    }),
    shownBy('/:place/:one', ['one']),
    shownBy('/:place/:one/:two', ['one', 'two']),
  ]
  function doingOf({ params }: Request) {
    const found = doings.get(String(params.operation))
    if (!found) throw new HttpError(404, null, 'The console has no such action.')
    return found
  }
  return { routes, guard: (request, response) => access.requireOwnSite(request, response) }
}

/** Writes what goes wrong on a path of the console as a page, and elsewhere as `others` does. */
export function consoleErrors(others: ErrorWriter): ErrorWriter {
  return (response, refusal, docUrl) => {
    const { originalUrl = '' } = response.req as { readonly originalUrl?: string }
    if (/^\/console(?:[/?]|$)/.test(originalUrl)) writeConsolePage(response, errorPage(refusal))
    else others(response, refusal, docUrl)
  }
}

function errorPage({ status, error, message }: HttpError): ConsolePage {
  const title = error ?? generalWord(status)
  return {
    title,
    status,
    body: html`<div class="card stack"><h1>${title}</h1><p>${message}</p><p><a href="/console">Go to the overview</a></p></div>`,
  }
}

function placesOf(all: readonly { readonly path: string; readonly title: string }[]): readonly Place[] {
  const own = all.map(({ path, title }) => ({ href: `/console/${path}`, title }))
  const lists = { href: '/console/lists', title: 'Lists' }
  return [{ href: '/console', title: 'Overview' }, ...own, lists]
}

/** Where a sign-in leads: a page of the console, whatever was asked for. */
function nextOf(asked: string | null | undefined): string {
  return asked && /^\/console(?:[/?][\x21-\x7e]*)?$/.test(asked) && !asked.startsWith('/console/sign-')
    ? asked
    : '/console'
}
