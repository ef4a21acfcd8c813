import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { tryCallers } from './doors/callers.ts'
import { closeCodeFor, mayAsQueue } from './doors/close-calls.ts'
import { expected } from './doors/expected.ts'
import { Knocker, type Answer } from './doors/knock.ts'
import { tryProxied } from './doors/proxied.ts'
import { tryRoles } from './doors/roles.ts'
import { tryRoots } from './doors/roots.ts'
import { Scene } from './doors/scene.ts'
import { allGood, type Visit, type Way } from './doors/visit.ts'
import { visitsTo } from './doors/visits.ts'

export const name = 'doors'
export const claim = 'Every endpoint rejects a wrong token, role, host or origin.'
export const sizes = { ci: { combinedFaults: 2, proxied: 600 }, full: { combinedFaults: Infinity, proxied: 50_000 } }

/** At once; the server is as busy as in life, and what one of them does is seen by the look at the state after each way. */
const atOnce = 16

/**
 * Every way in that the router knows, tried with every kind of token, host, origin and content type: whoever does not belong there
 * is refused with 401, 403, 415, 421 or 429, and nothing of the tenant has changed. Then what a token may do once it is in: every
 * operation with every variant of its arguments by every role, two servers with different roots, and tokens that use each other's
 * idempotency keys and client ids.
 */
export async function run({ size, seed, say, random, temporaryFolder }: FigureContext): Promise<FigureResult> {
  const scene = await Scene.open(await temporaryFolder())
  const knocker = new Knocker(scene)
  const problems: string[] = []
  const complain = (problem: string): void => {
    problems.push(problem)
    if (problems.length <= 40) say(`PROBLEM (seed ${seed}) ${problem}`)
  }
  const counts = { ways: scene.ways.length, visits: 0, refused: 0, ofOthers: 0 }
  const statuses = new Map<number, number>()
  try {
    for (const way of undeclared(scene)) complain(`${way} is served and not declared, or the other way round`)
    const before = await scene.state()
    for (const way of scene.ways) {
      const visits = visitsTo(way, { isFull: sizes[size].combinedFaults === Infinity, random }).values()
      const visitAll = async (): Promise<void> => {
        for (const visit of visits) {
          const wanted = expected(way, visit)
          if (wanted.type === 'open') continue
          const answer = await knocker.knock(way, visit)
          counts.visits++
          statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
          if (wanted.type === 'refused') counts.refused++
          else counts.ofOthers++
          for (const problem of faults(way, answer, wanted)) complain(`${told(way, visit)}: ${problem}`)
        }
      }
      await Promise.all(Array.from({ length: atOnce }, visitAll))
      if ((await scene.state()) !== before) {
        complain(`${told(way)}: something of the tenant has changed`)
        break
      }
    }
    for (const [kind, code] of Object.entries(await closeCodeFor(scene))) {
      if (code !== 4401 && code !== 4429) complain(`a WebSocket with the token ${kind} was closed with ${code}`)
    }
    if ((await mayAsQueue(scene)) !== 403) complain('a token that may only queue has changed the mode of a session')
    if ((await scene.state()) !== before) complain('something of the tenant has changed in the end')
    const opened = await openAll(scene, knocker, complain)
    say(
      `${counts.ways} ways, ${counts.visits} visits: ${[...statuses].map(([status, n]) => `${n} × ${status}`).join(', ')}`,
    )
    say(`${opened} ways opened for who may, ${counts.ofOthers} visits were of another tenant and found nothing`)
    const { commands } = await tryRoles({ folder: await temporaryFolder(), random, complain })
    say(`${commands} commands of tokens with each role: who may not drive started and steered no run`)
    const roots = await tryRoots({ folder: await temporaryFolder(), random, complain })
    say(`${roots.visits} visits to ${roots.sessions} sessions of other roots: as to sessions that are not there`)
    const { requests } = await tryCallers({ folder: await temporaryFolder(), random, complain })
    say(`${requests} requests with keys and client ids of other tokens`)
    const { proxied } = await tryProxied({
      folder: await temporaryFolder(),
      random,
      complain,
      count: sizes[size].proxied,
    })
    say(`${proxied} requests through proxies with a public URL and an allowed origin`)
    const inside = { commands, outsideVisits: roots.visits, requests, proxied }
    return { ok: problems.length === 0, figures: { ...counts, opened, ...inside, problems: problems.length } }
  } finally {
    knocker.close()
    await scene.close()
  }
}

/** What the router would serve, held against what was declared. */
function undeclared({ server }: Scene): string[] {
  const served = new Set(
    server.routes.app.routes
      .filter(({ path }) => path !== '/*')
      .map(({ method, path }) => `${method.toLowerCase()} ${path.replaceAll(/:(\w+)/g, '{$1}')}`),
  )
  const declared = new Set(server.routes.declared.map(({ method, path }) => `${method} ${path}`))
  return [...served.symmetricDifference(declared)]
}

function faults({ path }: Way, { status, problem, cors }: Answer, wanted: ReturnType<typeof expected>): string[] {
  const found: string[] = []
  if (cors.length > 0) found.push(`foreign pages may read it by ${cors.join()}`)
  if (wanted.type === 'refused') {
    if (!wanted.statuses.includes(status)) found.push(`${status} ${problem} instead of ${wanted.statuses.join(' or ')}`)
    else if (problem === '') found.push(`${status} without a problem document`)
  } else if (/\{(id|token_id)\}/.test(path) && status < 400 && status !== 101) {
    found.push(`somebody of another tenant got ${status}`)
  } else if (status >= 500) {
    found.push(`${status} for another tenant`)
  }
  return found
}

/** The doors are no walls: each opens for who belongs there. What changes or ends things comes last. */
async function openAll(scene: Scene, knocker: Knocker, complain: (problem: string) => void): Promise<number> {
  const guards = new Set([401, 403, 415, 421, 429])
  const last = (way: Way): number =>
    way.method === 'get' ? 0 : /archive|restore/.test(way.path) ? 2 : way.method === 'delete' ? 3 : 1
  let opened = 0
  for (const way of [...scene.ways].sort((left, right) => last(left) - last(right))) {
    for (const visit of [allGood, { ...allGood, token: 'good cookie', origin: 'own' } as const]) {
      const { status, problem } = await knocker.knock(way, visit)
      // Nobody has the code or token that these ask for.
      const isGuess = way.path === '/api/pair' || way.path === '/api/sign-in'
      if (status >= 500 || (guards.has(status) && !isGuess && problem !== 'no-image')) {
        complain(`${told(way, visit)}: ${status} ${problem} for who may`)
      }
      if (visit === allGood) opened++
    }
  }
  return opened
}

function told({ method, path }: Way, visit?: Visit): string {
  return `${method} ${path}${visit ? ` ${Object.values(visit).join(' | ')}` : ''}`
}
