import { X509Certificate } from 'node:crypto'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { connect, createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { makeCertificate } from '../../../packages/server/src/self-signed.ts'

/** A name that only this program and its browser resolve, to loopback. */
export const proxyName = 'tape.test'

export interface ProxyOptions {
  kind: 'nginx' | 'caddy'
  /** Whether the proxy passes the path of the public URL or removes it. The files in `deploy` show both. */
  path: 'kept' | 'removed'
  folder: string
  port: number
  /** The port of `tapetree serve`. */
  upstream: number
}

export interface Proxy extends AsyncDisposable {
  fingerprint: string
}

/** Starts the real proxy with the configuration of `deploy`: only names, ports and files are those of this machine. */
export async function startProxy(options: ProxyOptions): Promise<Proxy> {
  const { kind, folder, port } = options
  const { cert, key } = makeCertificate([proxyName], Date.now())
  const files = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') }
  await writeFile(files.cert, cert)
  await writeFile(files.key, key, { mode: 0o600 })
  const config = join(folder, kind === 'nginx' ? 'nginx.conf' : 'Caddyfile')
  await writeFile(config, await (kind === 'nginx' ? nginxConfig : caddyConfig)(options, files))
  const [program, ...args] =
    kind === 'nginx'
      ? (['nginx', '-p', folder, '-c', config, '-e', 'stderr'] as const)
      : (['caddy', 'run', '--config', config, '--adapter', 'caddyfile'] as const)
  // Debian has nginx in a folder that is not in the path of every user.
  const path = `${process.env['PATH'] ?? ''}:/usr/sbin`
  const env = { PATH: path, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder }
  const child = spawn(program, args, { env, stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (said += chunk))
  const ended = once(child, 'close')
  await listening(port, child, () => said)
  return {
    fingerprint: new X509Certificate(cert).fingerprint256,
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGTERM')
      await ended
    },
  }
}

interface Files {
  cert: string
  key: string
}

async function nginxConfig({ path, folder, port, upstream }: ProxyOptions, { cert, key }: Files): Promise<string> {
  const site = replaced(await readFile('deploy/nginx.conf', 'utf8'), {
    'listen 443 ssl': `listen 127.0.0.1:${port} ssl`,
    'server_name tape.example': `server_name ${proxyName}`,
    '/etc/ssl/tape.example.pem': cert,
    '/etc/ssl/tape.example.key': key,
    ...(path === 'removed' && { 'location /agents {': 'location /agents/ {' }),
    'proxy_pass http://127.0.0.1:8787;': `proxy_pass http://127.0.0.1:${upstream}${path === 'removed' ? '/' : ''};`,
  })
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((each) => `${each}_temp_path ${folder}/${each};`)
    .join(' ')
  return `daemon off; master_process off; pid ${folder}/nginx.pid;
events {}
http { access_log off; ${temporary}
${site}
}
`
}

async function caddyConfig({ path, port, upstream }: ProxyOptions, { cert, key }: Files): Promise<string> {
  const site = replaced(await readFile('deploy/Caddyfile', 'utf8'), {
    'tape.example {': `https://${proxyName}:${port} {\n\tbind 127.0.0.1\n\ttls ${cert} ${key}`,
    '127.0.0.1:8787': `127.0.0.1:${upstream}`,
    ...(path === 'kept' && { 'handle_path /agents': 'handle /agents' }),
  })
  return `{\n\tadmin off\n\tauto_https disable_redirects\n}\n${site}`
}

/** Replaces the last occurrence, which is not in the comment at the top. Fails if the file no longer has it. */
function replaced(text: string, changes: Record<string, string>): string {
  let changed = text
  for (const [from, to] of Object.entries(changes)) {
    const at = changed.lastIndexOf(from)
    if (at === -1) throw new Error(`The configuration in deploy does not have ${JSON.stringify(from)}`)
    changed = changed.slice(0, at) + to + changed.slice(at + from.length)
  }
  return changed
}

/** Resolves when the port accepts connections; rejects if the program ends before that. */
async function listening(port: number, child: ChildProcess, said: () => string): Promise<void> {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`The proxy has ended: ${said().slice(-2000)}`)
    const socket = connect(port, '127.0.0.1')
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    socket.destroy()
    if (isOpen) return
    await sleep(20)
  }
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
