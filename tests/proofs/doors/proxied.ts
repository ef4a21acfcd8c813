import { LiveSessions, startServer, TokenStore, type RunningServer } from '@tapetree/server'
import { memoryStore } from '@tapetree/session'
import { request, type IncomingHttpHeaders } from 'node:http'
import { join } from 'node:path'
import { pick, type PartContext } from './part-context.ts'

const publicOrigin = 'https://tape.example:8443'
const allowedOrigin = 'https://app.example'

/** What a proxy passes on; `PORT` is that of the server. */
const axes = {
  host: ['tape.example:8443', 'tape.example', 'Tape.Example', 'tape.example:1', 'localhost:PORT', 'evil.example'],
  forwardedHost: [
    '',
    'tape.example:8443',
    'tape.example',
    'evil.example',
    'evil.example, tape.example',
    'tape.example, evil.example',
    'localhost:PORT',
  ],
  forwardedProto: ['', 'https', 'http', 'http, https', 'gopher'],
  origin: [
    '',
    publicOrigin,
    allowedOrigin,
    'https://tape.example',
    'http://tape.example:8443',
    'http://localhost:PORT',
    'https://localhost:PORT',
    'https://evil.example',
    'null',
    '*',
  ],
  prefix: ['/agents', ''],
  method: ['POST', 'OPTIONS'],
} as const

type Passed = { [Axis in keyof typeof axes]: (typeof axes)[Axis][number] }

/** Servers with a public URL and an allowed origin, whose proxy is trusted or not: random requests, and a second opinion about each. */
export async function tryProxied(context: PartContext & { count: number }): Promise<{ proxied: number }> {
  const { folder, random, complain, count } = context
  const tokens = await TokenStore.open({ file: join(folder, 'tokens.json') })
  const { token } = await tokens.create({ tenant: 'default', role: 'view' })
  for (const isTrusted of [true, false]) {
    const none = (): Promise<never> => Promise.reject(new Error('No session runs here.'))
    const sessions = new LiveSessions({ store: memoryStore(), openDriver: none, create: none })
    const server = await startServer({
      tenants: new Map([['default', sessions]]),
      tokens,
      publicUrl: `${publicOrigin}/agents`,
      allowedOrigins: [allowedOrigin],
      trustedProxies: isTrusted ? ['127.0.0.1'] : ['10.0.0.1'],
    })
    try {
      for (let tries = 0; tries < count / 2; tries++) {
        const passed = Object.fromEntries(
          Object.entries(axes).map(([axis, kinds]) => [axis, pick(kinds, random)]),
        ) as Passed
        const { port } = server.address
        const answer = await send(server, passed, token)
        const wanted = expected(passed, { isTrusted, port })
        const differs = (Object.keys(wanted) as (keyof Outcome)[]).filter((each) => answer[each] !== wanted[each])
        for (const each of differs) {
          const told = `${isTrusted ? 'a trusted' : 'an unlisted'} proxy passes ${JSON.stringify(passed)}`
          complain(`${told}: ${each} is ${String(answer[each])} instead of ${String(wanted[each])}`)
        }
      }
    } finally {
      await server.close()
    }
  }
  return { proxied: Math.ceil(count / 2) * 2 }
}

interface Outcome {
  status: number
  /** `Access-Control-Allow-Origin`. */
  readableBy: string | undefined
  /** Name, path and `Secure`. */
  cookie: string | undefined
}

/** Written down once more, apart from the code that does it. */
function expected(passed: Passed, { isTrusted, port }: { isTrusted: boolean; port: number }): Outcome {
  const own = (text: string): string => text.replace('PORT', String(port))
  const last = (list: string): string => list.split(', ').at(-1) ?? ''
  const host = own((isTrusted && last(passed.forwardedHost)) || passed.host).toLowerCase()
  const origin = own(passed.origin)
  const isPublic = host === 'tape.example:8443' || host === 'tape.example'
  if (!isPublic && !host.startsWith('localhost:')) return { status: 421, readableBy: undefined, cookie: undefined }
  const readableBy = origin === allowedOrigin ? allowedOrigin : undefined
  if (passed.method === 'OPTIONS') return { status: readableBy ? 204 : 403, readableBy, cookie: undefined }
  const proto = isTrusted ? last(passed.forwardedProto) : ''
  const ours = isPublic ? publicOrigin : `${proto === 'https' ? 'https' : 'http'}://${host}`
  if (origin !== '' && origin !== ours && origin !== allowedOrigin)
    return { status: 403, readableBy: undefined, cookie: undefined }
  const local = ours.startsWith('https') ? `__Host-tapetree-${port} / Secure` : `tapetree-${port} /`
  return { status: 200, readableBy, cookie: isPublic ? '__Secure-tapetree-8443 /agents/ Secure' : local }
}

function send(server: RunningServer, passed: Passed, token: string): Promise<Outcome> {
  const { port } = server.address
  const own = (text: string): string => text.replace('PORT', String(port))
  const isPreflight = passed.method === 'OPTIONS'
  const body = isPreflight ? '' : JSON.stringify({ token })
  const headers = {
    host: own(passed.host),
    ...(passed.forwardedHost !== '' && { 'x-forwarded-host': own(passed.forwardedHost) }),
    ...(passed.forwardedProto !== '' && { 'x-forwarded-proto': passed.forwardedProto }),
    ...(passed.origin !== '' && { origin: own(passed.origin) }),
    ...(isPreflight
      ? { 'access-control-request-method': 'POST' }
      : { 'content-type': 'application/json', 'content-length': body.length }),
  }
  const { promise, resolve, reject } = Promise.withResolvers<Outcome>()
  const path = `${passed.prefix}/api/sign-in`
  const asked = request(
    { host: '127.0.0.1', port, method: passed.method, path, setHost: false, headers },
    (response) => {
      response.resume()
      resolve({ status: response.statusCode ?? 0, ...readable(response.headers), cookie: cookieOf(response.headers) })
    },
  )
  asked.on('error', reject)
  asked.end(body)
  return promise
}

function readable(headers: IncomingHttpHeaders): Pick<Outcome, 'readableBy'> {
  return { readableBy: headers['access-control-allow-origin'] }
}

function cookieOf({ 'set-cookie': [set] = [] }: IncomingHttpHeaders): string | undefined {
  if (set === undefined) return undefined
  const [, name = '', path = ''] = /^([^=]+)=.*; Path=([^;]+);/.exec(set) ?? []
  return `${name} ${path}${set.endsWith('; Secure') ? ' Secure' : ''}`
}
