import { randomUUID } from 'node:crypto'
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { once } from 'node:events'
import { basename, dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { noRules } from '../permissions/rules.ts'
import { startCommand } from '../tools/commands/command.ts'
import { commandEnvironment } from '../tools/commands/environment.ts'
import { dismissSupervisor } from '../tools/commands/supervisor-process.ts'
import { NetworkKeeper } from './network-keeper.ts'
import { probeSandbox } from './probe.ts'
import { Sandbox } from './sandbox.ts'

let folder: string
let work: string
let home: string
let sandbox: Sandbox
let count = 0

beforeAll(async () => {
  // Not below /tmp, which every box replaces.
  folder = realpathSync(mkdtempSync(join(process.cwd(), 'node_modules/.sandbox-test-')))
  ;[work, home] = [join(folder, 'work'), join(folder, 'home')]
  for (const path of ['work', 'home/.ssh', 'home/.cache', 'outside', 'data'])
    mkdirSync(join(folder, path), { recursive: true })
  writeFileSync(join(home, '.ssh/id_ed25519'), 'canary: key')
  writeFileSync(join(folder, 'data/credentials.json'), 'canary: data')
  writeFileSync(join(folder, 'outside/file'), 'before')
  execFileSync('git', ['init', '-q', work])
  writeFileSync(join(work, '.env'), 'canary: env')
  sandbox = await Sandbox.open({ folders: [work], home, keep: join(folder, 'keep'), own: [join(folder, 'data')] })
})
afterAll(async () => {
  await dismissSupervisor()
  rmSync(folder, { recursive: true })
})

async function inBox(
  command: string,
  options: { isReadOnly?: boolean; box?: Sandbox; cwd?: string } = {},
): Promise<{ code: number | null; text: string }> {
  const { box = sandbox, isReadOnly = false, cwd = work } = options
  const { argv, env } = await box.box(cwd, { isReadOnly })
  const spool = join(folder, `spool-${++count}`)
  const environment = commandEnvironment({ PATH: process.env['PATH'], HOME: home }, { set: env })
  const started = await startCommand({ spool, command, cwd, env: environment, box: argv, deadlineMs: 30_000 })
  const outcome = await started.wait()
  const { pieces } = await started.output()
  const text = Buffer.concat(pieces.map(({ bytes }) => bytes)).toString()
  return { code: outcome.type === 'ended' ? outcome.exit.code : null, text }
}

/** A program that listens on a socket. A program that is killed leaves the file of its socket. */
async function listenApart(path: string, { cwd = '/', after = '' } = {}): Promise<ChildProcess> {
  const listening = `require("net").createServer().listen(${JSON.stringify(path)}, () => {${after}console.log("up")})`
  const program = spawn(process.execPath, ['-e', listening], { cwd, stdio: ['ignore', 'pipe', 'inherit'] })
  await once(program.stdout, 'data')
  return program
}

function reaching(...targets: object[]): string {
  return `const net=require("net");for(const to of ${JSON.stringify(targets)}){const s=net.connect(to).on("connect",()=>{console.log("reached",to);s.destroy()}).on("error",()=>{})}`
}

describe('a command in the sandbox', () => {
  test('changes files of the working folder, and has the exit code that it has outside', async () => {
    expect(await inBox('echo new > made && cat made && exit 7')).toEqual({ code: 7, text: 'new\n' })
    expect(readFileSync(join(work, 'made'), 'utf8')).toBe('new\n')
  })

  test('changes nothing else', async () => {
    const { code } = await inBox(
      `echo after > ${folder}/outside/file || touch ${home}/x || touch /etc/tapetree-test || touch /usr/x`,
    )
    expect(code).not.toBe(0)
    expect(readFileSync(join(folder, 'outside/file'), 'utf8')).toBe('before')
  })

  test('sees a working folder below /tmp, also if it may only read', async () => {
    const own = realpathSync(mkdtempSync('/tmp/tapetree-sandbox-'))
    try {
      writeFileSync(join(own, 'file'), 'mine')
      const box = await Sandbox.open({ folders: [own], home, keep: join(folder, 'keep-below-tmp'), own: [] })
      const command = 'cat file; touch file 2>/dev/null && echo written'
      expect((await inBox(command, { box, cwd: own, isReadOnly: true })).text).toBe('mine')
      expect((await inBox(command, { box, cwd: own })).text).toBe('minewritten\n')
    } finally {
      rmSync(own, { recursive: true })
    }
  })

  test('shares /tmp with the other commands of the session, and not with the machine', async () => {
    const name = `tapetree-${randomUUID()}`
    const { text } = await inBox(`echo shared > /tmp/${name}; ls /tmp; echo $TMPDIR`)
    expect(text).toContain(name)
    expect(text.split('\n')).not.toContain('keep')
    expect((await inBox(`cat /tmp/${name}`)).text).toBe('shared\n')
    expect(existsSync(`/tmp/${name}`)).toBe(false)
  })

  test('reads no secret: of the home folder, of the system, of tapetree, or of the working folder', async () => {
    const { text } = await inBox(
      `cat ${home}/.ssh/* ${folder}/data/* .env /etc/shadow ${folder}/keep/* 2>&1; ls -a ${home}/.ssh ${folder}/data; true`,
    )
    expect(text).not.toContain('canary')
    expect(text).not.toContain('root:')
  })

  test('reads no secret of the home folder by a link that leads to another name', async () => {
    for (const name of ['file', 'folder']) {
      mkdirSync(join(folder, 'dotfiles', name), { recursive: true })
      writeFileSync(join(folder, 'dotfiles', name, 'credentials'), 'canary: linked')
    }
    symlinkSync(join(folder, 'dotfiles/file/credentials'), join(home, '.netrc'))
    symlinkSync(join(folder, 'dotfiles/folder'), join(home, '.aws'))
    const { text } = await inBox(`cat ${home}/.netrc ${home}/.aws/* ${folder}/dotfiles/*/*`)
    expect(text).not.toContain('canary')
  })

  test('neither reads nor changes a control file that may hold a secret', async () => {
    for (const name of ['.npmrc', '.envrc', '.yarnrc.yml', '.pypirc']) {
      mkdirSync(join(work, 'packages'), { recursive: true })
      for (const path of [join(work, name), join(work, 'packages', name)]) {
        writeFileSync(path, 'canary: token')
        const { text } = await inBox(
          `cat ${path}; cp ${path} copied; cat copied; echo x >> ${path}; mv -f ${path} moved`,
        )
        expect(text, path).not.toContain('canary')
        expect(readFileSync(path, 'utf8')).toBe('canary: token')
      }
    }
  })

  test('does not read a secret by a link of the working folder that leads to another name', async () => {
    writeFileSync(join(folder, 'outside/production'), 'canary: production')
    symlinkSync(join(folder, 'outside/production'), join(work, '.env.production'))
    writeFileSync(join(work, 'settings'), 'canary: settings')
    symlinkSync('settings', join(work, '.env.local'))
    const { text } = await inBox(`cat .env.production .env.local settings ${folder}/outside/production`)
    expect(text).not.toContain('canary')
  })

  test('reads no secret of the user in node_modules, and a package manager can still replace a package', async () => {
    const [pkg, later] = [join(work, 'node_modules/pkg'), new Date(Date.now() + 60_000)]
    for (const path of [`${pkg}/test`, join(work, 'node_modules/.cache'), join(work, 'node_modules_old/pkg')])
      mkdirSync(path, { recursive: true })
    writeFileSync(join(pkg, 'package.json'), '{}')
    writeFileSync(join(pkg, 'test/fixture.pem'), 'public: fixture')
    const own = [join(pkg, '.env'), join(work, 'node_modules/.cache/.env'), join(work, 'node_modules_old/pkg/.env')]
    for (const path of own) {
      writeFileSync(path, 'canary: env')
      utimesSync(path, later, later)
    }
    const { text } = await inBox(`cat ${own.join(' ')} ${pkg}/test/fixture.pem`)
    expect(text).toContain('public: fixture')
    expect(text).not.toContain('canary')
    rmSync(join(pkg, '.env'))
    expect(await inBox(`rm -r ${pkg}`)).toEqual({ code: 0, text: '' })
  })

  test('reads the secrets of the working folder if the user has allowed that', async () => {
    const open = await Sandbox.open({ folders: [work], home, keep: join(folder, 'keep'), showsOwnSecrets: true })
    expect((await inBox('cat .env', { box: open })).text).toBe('canary: env')
  })

  test('commits, but changes neither hooks nor settings of a repository', async () => {
    writeFileSync(join(work, 'a'), 'a')
    const identity = '-c user.name=a -c user.email=a@example.com'
    expect(await inBox(`git add a && git ${identity} commit -qm first && git log --format=%s`)).toEqual({
      code: 0,
      text: 'first\n',
    })
    for (const attack of [
      'echo "touch /tmp/hooked" > .git/hooks/post-commit',
      'git config core.fsmonitor ./x',
      'mv .git .other && git init -q',
      'mkdir -p .git/hooks && ln -sf /tmp/x .git/hooks/pre-commit',
    ]) {
      const { code } = await inBox(attack)
      expect(code, attack).not.toBe(0)
    }
  })

  test('cannot change hooks of a repository within the working folder', async () => {
    execFileSync('git', ['init', '-q', join(work, 'deep/nested')])
    expect((await inBox('echo x > deep/nested/.git/hooks/post-checkout')).code).not.toBe(0)
    expect((await inBox('mv deep/nested/.git deep/nested/moved')).code).not.toBe(0)
  })

  test('cannot change settings of editors and agents that exist', async () => {
    mkdirSync(join(work, '.vscode'))
    writeFileSync(join(work, '.vscode/tasks.json'), '{}')
    expect((await inBox('echo x > .vscode/tasks.json')).code).not.toBe(0)
    expect((await inBox('mv .vscode y')).code).not.toBe(0)
  })

  test('has no rights over the kernel, even for root', async () => {
    const { text } = await inBox(
      '(echo x > /proc/sys/kernel/core_pattern) 2>&1; unshare -U true 2>&1; mount -t tmpfs t /mnt 2>&1; grep CapEff /proc/self/status',
    )
    expect(text).toMatch(/core_pattern: (?:Read-only|Permission)/)
    expect(text).toMatch(/unshare failed/)
    expect(text).toMatch(/CapEff:\t0{16}/)
    expect(readFileSync('/proc/sys/kernel/core_pattern', 'utf8')).not.toBe('x\n')
  })

  test('sees no process of the machine, and none of its own boxes from outside', async () => {
    const { text } = await inBox(
      `ls /proc | grep -c '^[0-9]'; for p in /proc/[0-9]*; do cat $p/root${work}/.env 2>/dev/null; done; true`,
    )
    expect(Number.parseInt(text, 10)).toBeLessThan(12)
    expect(text).not.toContain('canary')
  })

  test('reaches no server of the machine: neither by address nor by socket', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const path = join(home, 'agent.sock')
    const local = await listenApart(path)
    const { port } = server.address() as { port: number }
    writeFileSync(join(work, 'reach.cjs'), reaching({ port, host: '127.0.0.1' }, { path }))
    expect((await inBox(`${process.execPath} reach.cjs`)).text).toBe('')
    server.close()
    local.kill('SIGKILL')
  })

  test.each([
    ['in its current folder', 'home', ''],
    ['in a folder that it has left since', 'home', 'process.chdir("/");'],
    ['in the working folder, which it has left since', 'work', 'process.chdir("/");'],
  ])('reaches no server that has bound its socket by a relative path %s', async (_, place, after) => {
    const path = join(folder, place, 'relative.sock')
    rmSync(path, { force: true })
    const server = await listenApart('relative.sock', { cwd: join(folder, place), after })
    writeFileSync(join(work, 'reach.cjs'), reaching({ path }))
    expect(execFileSync(process.execPath, [join(work, 'reach.cjs')], { encoding: 'utf8' })).toContain('reached')
    expect((await inBox(`${process.execPath} reach.cjs`)).text).toBe('')
    server.kill('SIGKILL')
  })

  test('runs although a socket that it must not reach goes before it starts', async () => {
    for (const path of [join(home, 'gone.sock'), join(work, 'gone.sock')]) {
      const server = await listenApart(path)
      const { argv } = await sandbox.box(work)
      expect(argv.join(' ')).toContain(path)
      server.kill('SIGKILL')
      rmSync(path)
      const started = await startCommand({
        spool: join(folder, `spool-${++count}`),
        command: 'echo runs',
        cwd: work,
        env: {},
        box: argv,
        deadlineMs: 30_000,
      })
      await started.wait()
      const { pieces } = await started.output()
      expect(Buffer.concat(pieces.map(({ bytes }) => bytes)).toString()).toBe('runs\n')
    }
  })

  test('does not depend on sockets in folders that are hidden anyway', async () => {
    const path = join(folder, 'data/own.sock')
    const server = await listenApart(path)
    const { argv } = await sandbox.box(work)
    expect(argv.join(' ')).not.toContain(path)
    writeFileSync(join(work, 'reach.cjs'), reaching({ path }))
    expect((await inBox(`${process.execPath} reach.cjs`)).text).toBe('')
    server.kill('SIGKILL')
  })

  test('connects to a socket of another command in the sandbox', async () => {
    const network = new NetworkKeeper({
      folder: join(folder, 'data', 'network'),
      bwrap: sandbox.support.type === 'bubblewrap' ? sandbox.support.path : '',
      rules: noRules,
      idleMs: 100,
    })
    const shared = sandbox.withNetwork(() => network)
    const server = `require('net').createServer((s)=>s.end('hello',()=>process.exit())).listen('own.sock',()=>require('fs').writeFileSync('up',''))`
    const serving = inBox(`${process.execPath} -e "${server}"`, { box: shared })
    await vi.waitFor(() => expect(existsSync(join(work, 'up'))).toBe(true), { timeout: 25_000, interval: 20 })
    const client = `require('net').connect('own.sock').pipe(process.stdout)`
    expect((await inBox(`${process.execPath} -e "${client}"`, { box: shared })).text).toBe('hello')
    await serving
    await network.close()
  })

  test('cannot write at all if it is judged to only read', async () => {
    expect((await inBox('touch other || echo read-only', { isReadOnly: true })).text).toContain('read-only')
  })

  test('is ended with all of its processes', async () => {
    const { text } = await inBox('(setsid sleep 300 &) ; echo left')
    expect(text).toBe('left\n')
    expect(execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' })).not.toContain('sleep 300')
  })
})

describe('a working folder whose git folder is elsewhere', () => {
  const identity = '-c user.name=a -c user.email=a@example.com'
  const git = (cwd: string, ...args: string[]): string =>
    execFileSync('git', ['-c', 'protocol.file.allow=always', ...identity.split(' '), ...args], {
      cwd,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    })

  /** A repository with a commit. */
  function repository(name: string): string {
    const place = join(folder, name)
    execFileSync('git', ['init', '-q', '-b', 'main', place])
    git(place, 'commit', '-q', '--allow-empty', '-m', 'first')
    return place
  }

  async function boxOf(...folders: string[]): Promise<Sandbox> {
    return Sandbox.open({ folders, home, keep: join(folder, 'keep-git') })
  }

  /** Those that succeed. */
  async function succeeding(attacks: readonly string[], place: { box: Sandbox; cwd: string }): Promise<string[]> {
    const tried = attacks.map((attack, index) => `(${attack}) > /dev/null 2>&1 && echo ${index}`)
    const { text } = await inBox(`${tried.join('; ')}; echo tried`, place)
    expect(text).toContain('tried')
    return attacks.filter((_, index) => text.split('\n').includes(String(index)))
  }

  const commit = `echo x >> file && git add file && git ${identity} commit -qm second && git log --format=%s`

  test('commits in a linked worktree, but changes no hooks, settings or other worktrees of its repository', async () => {
    const [main, cwd] = [repository('main-1'), join(folder, 'linked-1')]
    git(main, 'worktree', 'add', '-q', cwd, '-b', 'topic')
    git(main, 'worktree', 'add', '-q', join(folder, 'linked-other'), '-b', 'other')
    const box = await boxOf(cwd)
    expect(await inBox(commit, { box, cwd })).toEqual({ code: 0, text: 'second\nfirst\n' })
    expect(git(main, 'log', '--format=%s', 'topic')).toBe('second\nfirst\n')
    const attacks = [
      `echo x > ${main}/.git/hooks/post-commit`,
      'git config core.fsmonitor ./x',
      `echo x >> ${main}/.git/config`,
      `echo x > ${main}/.git/info/attributes`,
      `echo x > ${main}/.git/worktrees/linked-1/commondir`,
      `mv ${main}/.git/worktrees/linked-1 ${main}/.git/worktrees/moved`,
      `echo x > ${main}/.git/worktrees/linked-other/commondir`,
      `echo x > ${main}/.git/HEAD`,
      `echo x > ${main}/file`,
      'mv .git moved',
    ]
    expect(await succeeding(attacks, { box, cwd })).toEqual([])
    expect((await box.details('writable')).writable).toEqual([
      cwd,
      ...['worktrees/linked-1', 'objects', 'refs', 'logs'].map((name) => join(main, '.git', name)),
    ])
  })

  test('writes nothing elsewhere if the repository does not name the working folder in return', async () => {
    const [main, cwd] = [repository('main-2'), join(folder, 'linked-2')]
    git(main, 'worktree', 'add', '-q', cwd, '-b', 'topic')
    const forged = join(folder, 'forged')
    mkdirSync(forged)
    writeFileSync(join(forged, '.git'), readFileSync(join(cwd, '.git')))
    const box = await boxOf(forged)
    expect((await inBox(`touch ${main}/.git/objects/x`, { box, cwd: forged })).code).not.toBe(0)
    expect((await box.details('writable')).writable).toEqual([forged])
  })

  test('commits in a submodule, from its own folder and from the one around it', async () => {
    const [part, main] = [repository('part'), repository('main-3')]
    git(main, 'submodule', 'add', '-q', part, 'deep/sub')
    git(main, 'commit', '-qm', 'with submodule')
    const sub = join(main, 'deep/sub')
    const around = await boxOf(main)
    expect(await inBox(`cd deep/sub && ${commit}`, { box: around, cwd: main })).toMatchObject({ code: 0 })
    const own = await boxOf(sub)
    expect(await inBox(commit, { box: own, cwd: sub })).toMatchObject({ code: 0 })
    const modules = join(main, '.git/modules/deep/sub')
    const attacks = [
      `echo x > ${modules}/hooks/post-commit`,
      'git -C deep/sub config core.fsmonitor ./x || git config core.fsmonitor ./x',
      `mv ${modules} ${modules}-moved`,
      `mkdir ${main}/.git/modules/other`,
    ]
    expect(await succeeding(attacks, { box: around, cwd: main })).toEqual([])
    expect(await succeeding([...attacks, `echo x > ${main}/.git/HEAD`], { box: own, cwd: sub })).toEqual([])
  })

  test('cannot lead a linked worktree to other settings from the main working folder', async () => {
    const main = repository('main-4')
    git(main, 'worktree', 'add', '-q', join(folder, 'linked-4'), '-b', 'topic')
    const box = await boxOf(main)
    const worktree = '.git/worktrees/linked-4'
    const attacks = [`echo /tmp/x > ${worktree}/commondir`, `mv ${worktree} ${worktree}-moved`]
    expect(await succeeding(attacks, { box, cwd: main })).toEqual([])
    const spool = join(folder, 'spool-worktree')
    await box.box(main, { spool })
    writeFileSync(join(main, worktree, 'config.worktree'), '[core]\n\tfsmonitor = ./x\n')
    const taken = await box.takeBack({ cwd: main, spool })
    expect(taken?.writes.map(({ path }) => path)).toEqual([`${worktree}/config.worktree`])
  })
})

describe('a machine without a sandbox', () => {
  test('says what is missing and how to get it', async () => {
    expect(await probeSandbox({ path: '/nowhere' })).toMatchObject({
      type: 'none',
      reason: 'bubblewrap is not installed.',
    })
    const broken = join(folder, 'bin')
    mkdirSync(broken)
    writeFileSync(join(broken, 'bwrap'), '#!/bin/sh\necho "bwrap: setting up uid map: Permission denied" >&2\nexit 1\n')
    chmodSync(join(broken, 'bwrap'), 0o755)
    const support = await probeSandbox({ path: broken })
    expect(support).toMatchObject({ type: 'none', reason: expect.stringContaining('setting up uid map') as string })
  })

  test.each([
    ['kernel/apparmor_restrict_unprivileged_userns', '1', /^AppArmor does not let/, /apparmor\.d\/bwrap[^]*userns,/],
    ['kernel/unprivileged_userns_clone', '0', /^The kernel does not let users/, /unprivileged_userns_clone=1/],
    ['user/max_user_namespaces', '0', /^The kernel allows no user namespaces/, /max_user_namespaces=15000/],
  ])('says that the setting %s forbids it, and the repair', async (name, value, reason, repair) => {
    const [path, kernelSettings] = [join(folder, 'bin'), join(folder, `proc-${basename(name)}`)]
    for (const made of [path, join(kernelSettings, dirname(name))]) mkdirSync(made, { recursive: true })
    writeFileSync(join(kernelSettings, name), `${value}\n`)
    const complaint = 'bwrap: setting up uid map: Permission denied'
    writeFileSync(join(path, 'bwrap'), `#!/bin/sh\necho "${complaint}" >&2\nexit 1\n`, { mode: 0o755 })
    const support = await probeSandbox({ path, kernelSettings })
    expect(support).toMatchObject({ type: 'none', reason: expect.stringMatching(reason) as string })
    expect(support).toMatchObject({ reason: expect.stringContaining(complaint) as string })
    expect(support).toMatchObject({ repair: expect.stringMatching(repair) as string })
  })

  test('runs no command instead of running it outside', async () => {
    const support = await probeSandbox({ path: '/nowhere' })
    const none = await Sandbox.open({ folders: [work], home, keep: join(folder, 'keep'), support })
    await expect(none.box(work)).rejects.toThrow('There is no sandbox: bubblewrap is not installed.')
  })
})
