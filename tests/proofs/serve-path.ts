import { mkdir } from 'node:fs/promises'
import dns from 'node:dns'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { fakeHome } from '../../packages/cli/src/testing/fake-home.ts'
import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { startCommand } from '../terminal/command.ts'
import { SiteBrowser } from './docs-site/site-browser.ts'
import type { PathClient } from './serve-path/client.ts'
import { inspectStates, populate } from './serve-path/looks.ts'
import { walk, type PathOptions } from './serve-path/path.ts'
import { freePort, proxyName, startProxy, type ProxyOptions } from './serve-path/proxies.ts'

export const name = 'serve-path'
export const claim =
  "A phone pairs by the printed link: on loopback, behind nginx and Caddy below a path, and at the machine's own address."
export const sizes = { ci: { paths: 4, looks: 2 }, full: { paths: 7, looks: 4 } }

/** `SCREENSHOTS=<folder>` keeps a picture of each state of the page. */
const screenshots = process.env['SCREENSHOTS']

/** Places that share the machine. */
const atOnce = 3
/** On a busy machine, a step may take long. */
const patienceMs = 60_000

interface Place {
  name: string
  args: readonly string[]
  proxy?: Pick<ProxyOptions, 'kind' | 'path'>
  /** In which of these the states of the page are inspected. */
  looks?: readonly { width: number; scheme: 'light' | 'dark' }[]
}

/** Runs the built command as a person would, and does in Chromium what the person does with the link. */
export async function run({ size, seed, say, random, temporaryFolder }: FigureContext): Promise<FigureResult> {
  resolveProxyName()
  if (screenshots !== undefined) await mkdir(screenshots, { recursive: true })
  const problems: string[] = []
  const figures: Record<string, number> = {}
  await using browser = await SiteBrowser.start({
    args: [`--host-resolver-rules=MAP ${proxyName} 127.0.0.1`],
  })
  const visit = async (place: Place): Promise<void> => {
    const complain = (problem: string): void => {
      problems.push(problem)
      say(`PROBLEM (seed ${seed}) ${place.name}: ${problem}`)
    }
    const start = performance.now()
    const steps: string[] = []
    const reached = (step: string): void => void steps.push(`${step} ${Math.round(performance.now() - start)} ms`)
    const folder = await temporaryFolder()
    await visitPlace({ place, browser, folder, name: String(seed), complain, reached })
    say(`${place.name}: ${steps.join(', ')}`)
    figures[`${place.name.replaceAll(/\W+/g, '_')}_ms`] = Math.round(performance.now() - start)
  }
  // Alone, so that its times are those of a person; the others share the machine.
  const [first, ...others] = placesOf(size, random)
  if (first) await visit({ ...first, looks: looks.slice(0, sizes[size].looks) })
  const rest = others.values()
  const visitRest = async (): Promise<void> => {
    for (const place of rest) await visit(place)
  }
  await Promise.all(Array.from({ length: atOnce }, visitRest))
  return { ok: problems.length === 0, figures: { ...figures, problems: problems.length } }
}

const looks = [
  { width: 360, scheme: 'light' },
  { width: 1440, scheme: 'dark' },
  { width: 360, scheme: 'dark' },
  { width: 1440, scheme: 'light' },
] as const

interface VisitOptions extends Pick<PathOptions, 'name' | 'complain' | 'reached'> {
  place: Place
  browser: SiteBrowser
  folder: string
}

async function visitPlace({ place, browser, folder, name, complain, reached }: VisitOptions): Promise<void> {
  await using home = await fakeHome()
  const [port, proxyPort] = [await freePort(), await freePort()]
  const publicUrl = `https://${proxyName}:${proxyPort}/agents`
  const behind = place.proxy ? ['--public-url', publicUrl, '--trusted-proxy', '127.0.0.1'] : []
  await using command = startCommand({
    home,
    args: ['serve', '--port', String(port), ...place.args, ...behind],
    timeoutMs: 300_000,
  })
  await command.untilSaid(/type the code .*\n/)
  reached('link')
  const link = /^ {2}(https?:\S+#pair=\S+)$/m.exec(command.stdout)?.[1] ?? ''
  const started = place.proxy && (await startProxy({ ...place.proxy, folder, port: proxyPort, upstream: port }))
  await using proxy = started
  const fingerprint = proxy?.fingerprint ?? new URLSearchParams(new URL(link).hash.slice(1)).get('fingerprint')
  await using view = await browser.open({ width: 360, scheme: 'light' })
  await using otherView = await browser.open({ width: 360, scheme: 'dark' })
  for (const each of [view, otherView]) each.page.setDefaultTimeout(patienceMs)
  const inspect = async (client: PathClient): Promise<void> => {
    if (place.looks) await populate(client, home)
    for (const look of place.looks ?? []) {
      await using other = await browser.open(look)
      const shot = screenshots && join(screenshots, `${look.width}-${look.scheme}`)
      await inspectStates({ view: other, client, url: new URL(link).origin, shot, complain })
    }
  }
  const path = { view, otherView, home, link, fingerprint: fingerprint ?? undefined, name, complain, reached }
  await walk({ ...path, withClient: inspect })
  const { code } = await command.kill('SIGTERM')
  if (code !== 0) complain(`the server ended with ${code}`)
}

/** At size ci, chance decides whether a proxy keeps the path and whether the server listens on one or all addresses. */
function placesOf(size: FigureContext['size'], random: () => number): Place[] {
  const infos = Object.values(networkInterfaces()).flatMap((each = []) => each)
  const address = infos.find(({ family, internal }) => family === 'IPv4' && !internal)?.address
  if (address === undefined) throw new Error('This machine has no address that other machines could use.')
  const behind = (kind: 'nginx' | 'caddy', path: 'kept' | 'removed'): Place => ({
    name: `${kind}, path ${path}`,
    args: [],
    proxy: { kind, path },
  })
  const selfSigned = (host: string): Place => ({
    name: `self-signed, ${host === '0.0.0.0' ? 'all addresses' : 'one address'}`,
    args: ['--host', host, '--self-signed'],
  })
  const either = <Value>(one: Value, other: Value): Value[] =>
    size === 'full' ? [one, other] : [random() < 0.5 ? one : other]
  return [
    { name: 'loopback', args: [] },
    ...either(behind('nginx', 'kept'), behind('nginx', 'removed')),
    ...either(behind('caddy', 'kept'), behind('caddy', 'removed')),
    ...either(selfSigned(address), selfSigned('0.0.0.0')),
  ]
}

/** For the clients in this process; the browser has a rule of its own. */
function resolveProxyName(): void {
  const { lookup } = dns
  const resolve = (host: string, ...rest: unknown[]): void =>
    (lookup as (...args: unknown[]) => void)(host === proxyName ? '127.0.0.1' : host, ...rest)
  dns.lookup = Object.assign(resolve, lookup)
}
