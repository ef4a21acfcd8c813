import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'

/** Stands in every file that no command may read. */
export const canary = 'CANARY-5f1c'
/** What an attack prints that has reached the kernel, a server or another process. */
export const escaped = 'ESCAPED'

/** A small machine: a home with keys, a working folder, other folders, and servers that no command may reach. */
export class Machine implements AsyncDisposable {
  readonly folder: string
  readonly home: string
  readonly work: string
  readonly data: string
  readonly outside: string
  readonly ports: { tcp: number; address: string }
  readonly sockets: { path: string; abstract: string }
  readonly #servers: Server[]
  readonly #sockets = new Set<Socket>()
  /** What connected. */
  readonly reached: string[] = []

  private constructor(folder: string, servers: Server[], names: Pick<Machine, 'ports' | 'sockets'>) {
    this.folder = folder
    this.#servers = servers
    this.ports = names.ports
    this.sockets = names.sockets
    this.home = join(folder, 'home')
    this.work = join(folder, 'work')
    this.data = join(folder, 'data')
    this.outside = join(folder, 'outside')
  }

  static async build(folder: string): Promise<Machine> {
    const write = (path: string, text: string, mode = 0o644): void => {
      mkdirSync(join(folder, path, '..'), { recursive: true })
      writeFileSync(join(folder, path), text, { mode })
    }
    for (const path of secretFiles) write(path, `${canary} ${path}\n`)
    write('home/notes.txt', 'notes\n')
    write('home/.bashrc', '# shell\n')
    write('home/.cache/tool/entry', 'cached\n')
    write('home/.config/systemd/user/a.service', '[Unit]\n')
    write('outside/file', 'before\n')
    write('outside/run.sh', '#!/bin/sh\n', 0o755)
    for (const path of [
      'work/a.txt',
      'work/b.txt',
      'work/docs/a.md',
      'work/one/x.txt',
      'work/two/x.txt',
      'work/fake/id_rsa',
    ])
      write(path, 'alpha\n')
    write('work/p.sh', `#!/bin/sh\necho mark >> "$OUTSIDE/C"\n`, 0o755)
    write('work/.vscode/tasks.json', '{}\n')
    write('work/.github/workflows/ci.yml', 'on: push\n')
    symlinkSync(join(folder, 'home/.config/systemd'), join(folder, 'work/link'))
    symlinkSync('.git/hooks', join(folder, 'work/hooks-link'))
    symlinkSync(join(folder, 'home/.ssh/id_rsa'), join(folder, 'work/key.txt'))
    for (const place of ['work', 'work/nested']) {
      const cwd = join(folder, place)
      // Without the sample hooks, which would only make each comparison of the machine take longer.
      execFileSync('git', ['init', '-q', '--template=', cwd])
      write(`${place}/.git/hooks/commit-msg.sample`, '#!/bin/sh\n', 0o755)
      write(`${place}/.git/info/exclude`, '# ignored\n')
      const identity = ['-c', 'user.name=a', '-c', 'user.email=a@example.com']
      execFileSync('git', ['add', '--', place === 'work' ? 'a.txt' : '.'], { cwd })
      execFileSync('git', [...identity, 'commit', '-q', '--allow-empty', '-m', 'first'], { cwd })
    }
    const servers = [createServer(), createServer(), createServer(), createServer()]
    const [loopback, own, local, abstract] = servers as [Server, Server, Server, Server]
    loopback.listen(0, '127.0.0.1')
    const infos = Object.values(networkInterfaces()).flatMap((each = []) => each)
    const address = infos.find(({ family, internal }) => family === 'IPv4' && !internal)?.address ?? '127.0.0.2'
    await once(loopback, 'listening')
    const { port } = loopback.address() as { port: number }
    own.listen(port, address)
    const names = { path: join(folder, 'home/agent.sock'), abstract: `tapetree-proof-${process.pid}-${port}` }
    local.listen(names.path)
    abstract.listen(`\0${names.abstract}`)
    for (const server of [own, local, abstract]) if (!server.listening) await once(server, 'listening')
    const machine = new Machine(folder, servers, { ports: { tcp: port, address }, sockets: names })
    for (const [index, server] of servers.entries()) {
      server.on('connection', (socket) => {
        machine.reached.push(['loopback', 'own address', 'socket', 'abstract socket'][index] as string)
        socket.on('error', () => undefined)
        machine.#sockets.add(socket)
        socket.end(`${escaped} ${canary}\n`)
      })
    }
    return machine
  }

  /** Everything that no command may change. Two equal texts mean two equal machines. */
  fingerprint({ withWork = false } = {}): string {
    const lines: string[] = []
    const visit = (path: string): void => {
      const info = lstatSync(path, { throwIfNoEntry: false })
      if (!info) return void lines.push(`${path} missing`)
      const kind = `${path} ${info.mode.toString(8)} ${info.uid}`
      if (info.isSymbolicLink()) lines.push(`${kind} -> ${readlinkSync(path)}`)
      else if (info.isDirectory()) {
        lines.push(kind)
        for (const name of readdirSync(path).toSorted()) visit(join(path, name))
      } else if (info.isFile()) lines.push(`${kind} ${createHash('sha256').update(readFileSync(path)).digest('hex')}`)
      else lines.push(kind)
    }
    for (const path of [this.home, this.data, this.outside]) visit(path)
    for (const path of withWork ? ['.'] : protectedInWork) visit(join(this.work, path))
    lines.push(`beside ${readdirSync(this.folder).toSorted().join()}`)
    for (const path of kernelSettings) lines.push(`${path} ${readFileSync(path, 'utf8').trim()}`)
    return lines.join('\n')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await Promise.all(this.#servers.map((server) => new Promise((resolve) => server.close(resolve))))
  }
}

const secretFiles = [
  'home/.ssh/id_rsa',
  'home/.ssh/config',
  'home/.aws/credentials',
  'home/.config/gh/hosts.yml',
  'home/.netrc',
  'home/.npmrc',
  'home/.git-credentials',
  'home/.bash_history',
  'data/credentials.json',
  'data/sessions/a/events.jsonl',
  'work/.env',
  'work/deploy/server.key',
  // Control files as well: a command may neither read nor change them.
  'work/.npmrc',
  'work/.envrc',
  'work/.yarnrc.yml',
  'work/.pypirc',
  'work/nested/.npmrc',
]

const protectedInWork = [
  '.git/hooks',
  '.git/config',
  '.git/info',
  '.vscode',
  '.github/workflows',
  '.npmrc',
  '.envrc',
  '.yarnrc.yml',
  '.pypirc',
  'nested/.git/hooks',
  'nested/.git/config',
  'nested/.git/info',
]

const kernelSettings = ['/proc/sys/kernel/core_pattern', '/proc/sys/kernel/hostname', '/proc/sys/vm/overcommit_memory']
