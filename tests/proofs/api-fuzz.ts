import fc from 'fast-check'
import { createHash } from 'node:crypto'
import { lstat, readdir, readFile } from 'node:fs/promises'
import { join, resolve, sep } from 'node:path'
import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import type { DeclaredRoute } from '../../packages/server/src/http/app.ts'
import { TestApi } from '../../packages/server/src/http/testing/test-api.ts'
import { addCarelessRoute } from './api-fuzz/careless-route.ts'
import { isKeyed, requestsTo, tryRequest, type Request } from './api-fuzz/send.ts'
import { buildStage, knownIds, openApi, type Stage } from './api-fuzz/stage.ts'
import { parametersOf, readTraversals, trySmuggling } from './api-fuzz/traversal.ts'

export const name = 'api-fuzz'
export const claim = 'No malformed request makes the server fail or leave its folder.'
export const sizes = { ci: { requestsPerRoute: 100 }, full: { requestsPerRoute: 10_000 } }

/** Requests to each route between which the sessions are made anew: many of them are gone by then. */
const round = 200
/** Of each route that takes an idempotency key, so many are sent several times at once with one key. */
const keyedRequests = 8
const atOnce = 4
const leastTraversals = 400
/** What people write is no id and no path, and each makes a session or a run: at size ci only some texts are tried there. */
const words = new Set(['name', 'prompt', 'text', 'message', 'instructions', 'q'])
const ciWords = 25

/**
 * Every route is sent requests made from its own schemas, with hostile values among them, some of them several times at once with one
 * idempotency key: it answers 2xx or 4xx, as it declares, and without naming a folder of the server.
 * Then every parameter is sent every text of the traversal corpus: the store touches nothing outside of its folder, no answer
 * shows what lies there, and nothing there has changed.
 */
export async function run({ size, seed, say, random, temporaryFolder }: FigureContext): Promise<FigureResult> {
  const stage = await buildStage(await temporaryFolder())
  const before = await listingOf(stage)
  const touched = new Set<string>()
  const problems: string[] = []
  const complain = (problem: string): void => {
    problems.push(problem)
    if (problems.length <= 50) say(`PROBLEM (seed ${seed}) ${problem}`)
  }

  const api = await openApi(stage, touched)
  let requests = 0
  const statuses = new Map<number, number>()
  const count = (status: number): void => void statuses.set(status, (statuses.get(status) ?? 0) + 1)
  const tryAndTell = async (route: DeclaredRoute, request: Request): Promise<void> => {
    const faults = await tryRequest(api, route, request, { count, hidden: stage.own })
    for (const fault of faults) complain(`${request.method} ${request.url} ${shorten(request.body)}: ${fault}`)
  }
  try {
    const perRoute = sizes[size].requestsPerRoute
    for (let done = 0; done < perRoute; done += round) {
      const known = await knownIds(api, stage)
      for (const [index, route] of api.routes.declared.entries()) {
        const arbitrary = requestsTo(route, known)
        const samples = fc.sample(arbitrary, {
          numRuns: Math.min(round, perRoute - done),
          seed: seed + index + done * 1000,
        })
        for (const request of samples) {
          requests++
          await tryAndTell(route, request)
        }
        if (!isKeyed(route)) continue
        for (const [number, request] of samples.slice(0, keyedRequests).entries()) {
          const headers = { ...request.headers, 'idempotency-key': `once-${done}-${index}-${number}` }
          const keyed = { ...request, headers }
          await Promise.all(Array.from({ length: atOnce }, () => tryAndTell(route, keyed)))
          requests += atOnce
        }
      }
    }
    say(`${requests} requests to ${api.routes.declared.length} routes`)
    say(
      [...statuses]
        .sort(([left], [right]) => left - right)
        .map(([status, count]) => `${status}: ${count}`)
        .join(', '),
    )

    const traversals = readTraversals(stage)
    if (traversals.length < leastTraversals) complain(`the corpus has only ${traversals.length} texts`)
    const smuggled = await smuggle(api, {
      stage,
      complain,
      textsFor: (member) =>
        size === 'ci' && words.has(member)
          ? traversals.filter(() => random() < ciWords / traversals.length)
          : traversals,
    })
    say(`${smuggled} requests with a text of the traversal corpus in one of their parameters`)

    for (const missed of await missedBy(stage, traversals)) complain(`nobody saw a route that ${missed}`)
    for (const path of touched) if (!isInside(path, stage.own)) complain(`the store touched ${path}`)
    if (touched.size === 0) complain('nobody saw what the store touched')
    if ((await listingOf(stage)) !== before) complain('something outside of the store has changed')
    return {
      ok: problems.length === 0,
      figures: {
        seed,
        routes: api.routes.declared.length,
        requests,
        succeeded: [...statuses].reduce((sum, [status, count]) => sum + (status < 300 ? count : 0), 0),
        traversals: traversals.length,
        smuggled,
        problems: problems.length,
      },
    }
  } finally {
    await api.close()
  }
}

async function smuggle(
  api: TestApi,
  {
    stage,
    textsFor,
    complain,
  }: { stage: Stage; textsFor: (member: string) => string[]; complain: (problem: string) => void },
): Promise<number> {
  let count = 0
  const sent = new Set<string>()
  let known = await knownIds(api, stage)
  for (const parameter of parametersOf(api.routes.declared)) {
    // Some texts are ids after all, and some routes remove what they name.
    if (!(await api.get(`/api/sessions/${known['id']?.[0]}`)).ok) known = await knownIds(api, stage)
    const { route, where, name: member } = parameter
    for (const text of textsFor(member)) {
      for (const { status, body } of await trySmuggling(api, parameter, { text, known })) {
        count++
        const what = `${route.method} ${route.path} with ${JSON.stringify(text)} as ${where} ${member}`
        if (status >= 500) complain(`${what}: status ${status}`)
        if (body.includes(stage.secret) || body.includes(stage.secret.replace(' ', '-')))
          complain(`${what} shows the canary`)
        // A search finds messages that this proof has sent, and some of them name a path of the server.
        if (text.includes(stage.own)) sent.add(JSON.stringify(text).slice(1, -1))
        else if (without(body, sent).includes(stage.own)) complain(`${what} shows a path of the server`)
      }
    }
  }
  return count
}

/** A proof that was never seen to fail proves nothing: a careless route must be caught at each of its faults. */
async function missedBy(stage: Stage, traversals: readonly string[]): Promise<string[]> {
  const api = new TestApi()
  const [route, file] = addCarelessRoute(api, stage)
  const seen = { shows: false, breaks: false, lies: false, 'names a folder': false }
  for (const text of traversals) {
    for (const { status, body } of await trySmuggling(api, file, { text, known: {} })) {
      seen.shows ||= body.includes(stage.secret)
      seen.breaks ||= status >= 500
    }
  }
  const check = { count: () => undefined, hidden: stage.own }
  const get = (file: string): Promise<string[]> =>
    tryRequest(api, route, { method: 'GET', url: `/api/careless/${file}`, headers: {} }, check)
  seen.lies = (await get('src%2Fmain.ts')).length > 0
  seen['names a folder'] = (await get('where')).includes('the answer names a folder of the server')
  await api.close()
  return Object.entries(seen).flatMap(([fault, wasSeen]) => (wasSeen ? [] : [fault]))
}

/** Everything beside the store, by name, kind and content. */
async function listingOf({ parent, own }: Stage): Promise<string> {
  const found: string[] = []
  const walk = async (folder: string): Promise<void> => {
    for (const each of (await readdir(folder)).sort()) {
      const path = join(folder, each)
      if (path === own) continue
      const { mode, size } = await lstat(path)
      const isFolder = (mode & 0o170000) === 0o040000
      const isFile = (mode & 0o170000) === 0o100000
      const content = isFile
        ? createHash('sha256')
            .update(await readFile(path))
            .digest('hex')
        : ''
      found.push([path, mode, isFolder ? '' : size, content].join(' '))
      if (isFolder) await walk(path)
    }
  }
  await walk(parent)
  return found.join('\n')
}

function isInside(path: string, folder: string): boolean {
  const whole = resolve(path)
  return whole === folder || whole.startsWith(`${folder}${sep}`)
}

function shorten(text = ''): string {
  return text.length > 200 ? `${text.slice(0, 200)}…` : text
}

function without(body: string, texts: ReadonlySet<string>): string {
  return [...texts].reduce((rest, text) => rest.replaceAll(text, ''), body)
}
