import { lookup as systemLookup } from 'node:dns/promises'
import { isIP, BlockList, isIPv4, isIPv6, type LookupFunction } from 'node:net'
import type { RequestInit, Response } from 'undici'
import { ToolProblem } from '../tool-problem.ts'
import { programUrl } from '../../util/program-url.ts'
import { untilAborted } from '@tapetree/session/util/deadline'
import { Worker } from 'node:worker_threads'

export interface Address {
  address: string
  family: number
}

export interface Network {
  /** Also addresses of this machine and its network. */
  allowPrivate: boolean
  lookup: (hostname: string) => Promise<Address[]>
  fetch: (url: string, init: RequestInit) => Promise<Response>
}

export const systemNetwork: Network = {
  allowPrivate: false,
  lookup: (hostname) => systemLookup(hostname, { all: true, order: 'verbatim' }),
  fetch: async (url, init) => (await import('undici')).fetch(url, init),
}

export interface PageRequest {
  url: string
  maxBytes: number
  network: Network
  signal: AbortSignal
}

export type Page =
  | { type: 'page'; url: string; status: number; statusText: string; contentType: string; body: Buffer; isCut: boolean }
  /** It has moved to a URL that was not judged yet. */
  | { type: 'moved'; url: string; to: string }

const maxRedirects = 5

/** Why a URL is never fetched; undefined if it may be. */
export function refusalOf(url: string): string | undefined {
  const parsed = URL.parse(url)
  if (!parsed) return 'It is not a valid URL.'
  if (parsed.protocol !== 'http:' && parsed.protocol !== 'https:')
    return 'Only http and https addresses can be fetched.'
  if (parsed.username !== '' || parsed.password !== '')
    return 'The URL contains a user name or a password; leave it out.'
  return undefined
}

/** Fetches a page, following redirects within one site. Each hop is checked like the first URL. */
export async function fetchPage(request: PageRequest): Promise<Page> {
  let url = new URL(request.url)
  for (let hop = 0; hop <= maxRedirects; hop += 1) {
    const next = await fetchOnce(url, request)
    if (!(next instanceof URL)) return next
    const refusal = refusalOf(next.href)
    if (refusal !== undefined) throw new ToolProblem(`${url.href} redirects to ${next.href}. ${refusal}`)
    if (!isSameSite(url, next)) return { type: 'moved', url: url.href, to: next.href }
    url = next
  }
  throw new ToolProblem(`${request.url} redirects more than ${maxRedirects} times.`)
}

/** The page, or its new location. */
async function fetchOnce(url: URL, { maxBytes, network, signal }: PageRequest): Promise<Page | URL> {
  const addresses = await checkedAddresses(url, network, signal)
  // The name is not resolved again, so it cannot change between the check and the connection.
  const { Agent } = await import('undici')
  const agent = new Agent({ connect: { lookup: pinnedTo(addresses) } })
  try {
    const response = await network.fetch(url.href, { dispatcher: agent, redirect: 'manual', signal, headers })
    const location = response.headers.get('location')
    if (redirects.has(response.status) && location !== null) {
      return URL.parse(location, url.href) ?? fail(`${url.href} redirects to an invalid URL.`)
    }
    const { status, statusText } = response
    const contentType = response.headers.get('content-type') ?? ''
    return { type: 'page', url: url.href, status, statusText, contentType, ...(await readBody(response, maxBytes)) }
  } catch (error) {
    if (signal.aborted || error instanceof ToolProblem) throw error
    throw new ToolProblem(`${url.href} could not be fetched: ${reasonOf(error)}.`, { cause: error })
  } finally {
    await agent.destroy()
  }
}

export interface PublicRequest {
  method: string
  headers: Record<string, string>
  body: Uint8Array
  network: Network
  signal: AbortSignal
}

/**
 * One request to a server on the internet. Addresses of this machine and its network are rejected, redirects are not
 * followed, and the body of the response is not read.
 */
export async function requestPublic(url: string, request: PublicRequest): Promise<{ status: number }> {
  const { network, signal, ...init } = request
  const refusal = refusalOf(url)
  if (refusal !== undefined) throw new ToolProblem(`${url} is not a valid address. ${refusal}`)
  const addresses = await checkedAddresses(new URL(url), network, signal)
  const { Agent } = await import('undici')
  const agent = new Agent({ connect: { lookup: pinnedTo(addresses) } })
  try {
    const response = await network.fetch(url, { ...init, dispatcher: agent, redirect: 'manual', signal })
    await response.body?.cancel()
    return { status: response.status }
  } finally {
    await agent.destroy()
  }
}

const redirects = new Set([301, 302, 303, 307, 308])

const headers = {
  'user-agent': 'tapetree',
  accept: 'text/markdown, text/html;q=0.9, application/json;q=0.9, text/*;q=0.8, */*;q=0.1',
}

async function checkedAddresses(url: URL, network: Network, signal: AbortSignal): Promise<Address[]> {
  const addresses = literalAddresses(url) ?? (await resolve(url.hostname, network, signal))
  refusePrivate(url, addresses, network)
  return addresses
}

/** Throws for a URL that is rejected without resolving its name. Makes no network request. */
export function refusePrivateLiteral(url: URL, network: Pick<Network, 'allowPrivate'>): void {
  refusePrivate(url, literalAddresses(url) ?? [], network)
}

function literalAddresses(url: URL): Address[] | undefined {
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  return isIP(host) ? [{ address: host, family: isIP(host) }] : undefined
}

function refusePrivate(url: URL, addresses: readonly Address[], { allowPrivate }: Pick<Network, 'allowPrivate'>): void {
  const isAllowed = allowPrivate || addresses.every(({ address }) => isPublicAddress(address))
  if (!isAllowed) throw new ToolProblem(`${url.href} is on this machine or a private network, and is not fetched.`)
}

async function resolve(host: string, network: Network, signal: AbortSignal): Promise<Address[]> {
  let addresses: Address[]
  try {
    addresses = await withSignal(network.lookup(host), signal)
  } catch (error) {
    if (signal.aborted) throw error
    throw new ToolProblem(`There is no address for ${host}: ${reasonOf(error)}.`, { cause: error })
  }
  return addresses.length > 0 ? addresses : fail(`There is no address for ${host}.`)
}

function pinnedTo(addresses: Address[]): LookupFunction {
  return (_hostname, options, callback) => {
    const [first] = addresses
    if (options.all || !first) callback(null, addresses)
    else callback(null, first.address, first.family)
  }
}

async function readBody(response: Response, maxBytes: number): Promise<{ body: Buffer; isCut: boolean }> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    chunks.push(chunk)
    size += chunk.length
    if (size > maxBytes) break
  }
  return { body: Buffer.concat(chunks).subarray(0, maxBytes), isCut: size > maxBytes }
}

/** The same host, with or without `www`; the scheme may become safer, not less safe. */
function isSameSite(from: URL, to: URL): boolean {
  if (bareName(from) !== bareName(to)) return false
  if (from.protocol === to.protocol) return from.port === to.port
  return from.protocol === 'http:' && from.port === '' && to.port === ''
}

function bareName(url: URL): string {
  return url.hostname.replace(/^www\./, '')
}

function withSignal<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason as Error)
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
}

function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  return cause instanceof Error && cause.message ? cause.message : String(cause)
}

function fail(message: string): never {
  throw new ToolProblem(message)
}

/**
 * Whether an address is on the public internet: not this machine, its network, a provider's metadata service,
 * or a reserved range. For IPv6 only the allocated range counts, which excludes forms that carry an IPv4
 * address.
 */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !reserved.check(address, 'ipv4')
  return (
    isIPv6(address) && !address.includes('%') && givenOut.check(address, 'ipv6') && !reserved.check(address, 'ipv6')
  )
}

const givenOut = new BlockList()
givenOut.addSubnet('2000::', 3, 'ipv6')

const reserved = new BlockList()
for (const [network, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
] as const) {
  reserved.addSubnet(network, prefix, 'ipv4')
}
for (const [network, prefix] of [
  // Teredo, ORCHID and other protocols
  ['2001::', 23],
  // documentation
  ['2001:db8::', 32],
  ['3fff::', 20],
  // 6to4, which carries an IPv4 address
  ['2002::', 16],
] as const) {
  reserved.addSubnet(network, prefix, 'ipv6')
}

interface HtmlPage {
  html: string
  url: string
}

const maxMemoryMb = 256

/** Converts on its own thread, because a page can be crafted to take hours; terminated when the signal aborts. */
export async function htmlToMarkdown({ html, url }: HtmlPage, signal: AbortSignal): Promise<string> {
  signal.throwIfAborted()
  const worker = new Worker(programUrl('html-worker', import.meta.url), {
    workerData: { html, url },
    env: {},
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: maxMemoryMb },
  })
  try {
    return await untilAborted(answerOf(worker), signal)
  } finally {
    await worker.terminate()
  }
}

function answerOf(worker: Worker): Promise<string> {
  return new Promise((resolve, reject) => {
    worker.once('message', resolve)
    worker.once('error', (error) => {
      reject(new ToolProblem('The page is built in a way that cannot be converted to Markdown.', { cause: error }))
    })
  })
}
