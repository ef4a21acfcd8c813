// Records the moving picture of the README: `npx node -C @tapetree/source scripts/terminal-recording.ts`. Needs a build.
// The run is real: an agent runs the tests of a small project, `kill -9` ends it, and the next process resumes it. Only the model is
// scripted. The recording fails unless the tests ran once and the model received their exit code.
import assert from 'node:assert/strict'
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fakeHome, type FakeHome } from '../packages/cli/src/testing/fake-home.ts'
import { call, say, shownTo } from '../tests/peers/answers.ts'
import { untilThere } from '../tests/peers/session-files.ts'
import { builtCommand } from '../tests/terminal/command-path.ts'
import { startTerminal, type Terminal } from '../tests/terminal/terminal.ts'
import { animatedSvg, type Frame } from './recording/animated-svg.ts'

const size = { columns: 84, rows: 22 }
const target = 'docs/images/crash.svg'

class Recorder {
  readonly frames: Frame[] = []
  caption = ''
  readonly #terminal: Terminal
  readonly #listener: { dispose: () => void }
  readonly #start = performance.now()

  constructor(terminal: Terminal) {
    this.#terminal = terminal
    this.#listener = terminal.emulator.onWriteParsed(() => this.take())
  }

  take(): void {
    const atMs = performance.now() - this.#start
    this.frames.push({ atMs, caption: this.caption, cells: this.#terminal.cells() })
  }

  say(caption: string): void {
    this.caption = caption
    this.take()
  }

  stop(): void {
    this.take()
    this.#listener.dispose()
  }
}

async function record(): Promise<Frame[]> {
  await using home = await fakeHome({ settings: { permissions: { mode: 'auto' } } })
  await writeProject(home)
  home.provider.script(
    call({ id: 'call_1', name: 'bash', input: { command: 'npm test --silent' } }),
    say('All three tests pass: **exit 0**, and they ', 'ran once.'),
  )
  const env = { PATH: `${home.cwd}/bin:${home.env['PATH']}`, PS1: '$ ', BASH_SILENCE_DEPRECATION_WARNING: '1' }
  await using terminal = startTerminal({
    home,
    env,
    ...size,
    command: ['bash', '--noprofile', '--norc', '-i'],
  })
  const recorder = new Recorder(terminal)
  await terminal.waitFor('$')

  recorder.say('An agent runs the tests.')
  await type(terminal, 'tapetree "Run the tests"')
  await untilThere(join(home.cwd, 'runs.log'))
  await terminal.waitFor('npm test')
  await delay(1500)

  recorder.say('kill -9 from another terminal, while the tests are running.')
  const pid = Number(await readFile(join(home.cwd, 'pid.txt'), 'utf8'))
  process.kill(pid, 'SIGKILL')
  await terminal.waitFor('Killed')
  await untilThere(join(home.cwd, 'ended.txt'))
  await delay(1500)

  recorder.say('The tests went on. A new process continues the session.')
  terminal.press('ctrl-l')
  await type(terminal, 'tapetree --continue')
  await terminal.waitFor(/resume/i)
  await delay(1800)
  terminal.press('enter')
  await terminal.waitFor('exit code 0')
  await terminal.waitFor('ran once.')
  await terminal.waitFor('Enter sends')
  recorder.say('The model gets the real result of the command.')
  await delay(2500)

  terminal.press('ctrl-c', 'ctrl-c')
  await terminal.waitFor((rows) => rows.findLast((row) => row !== '')?.trim() === '$')
  recorder.say('Exit 0, ran once.')
  await type(terminal, 'cat runs.log')
  await terminal.waitFor('started by npm test')
  recorder.stop()

  const result = shownTo(await home.provider.request(2)).find((line) => line.startsWith('tool: ')) ?? ''
  assert.match(result, /3 tests passed/)
  assert.doesNotMatch(result, /exit code/i, 'the model is told about an exit code other than 0')
  assert.equal(await readFile(join(home.cwd, 'runs.log'), 'utf8'), 'started by npm test\n')
  return recorder.frames
}

/** A project whose tests take a few seconds and note each start, and a `tapetree` command that notes its process. */
async function writeProject({ cwd }: FakeHome): Promise<void> {
  const test = (title: string, ms: number): string =>
    `test('${title}', async () => { await new Promise((done) => setTimeout(done, ${ms})) })\n`
  const files = {
    'package.json': JSON.stringify({
      name: 'shop',
      type: 'module',
      scripts: {
        pretest: 'echo started by npm test >> runs.log',
        test: 'node --test --test-reporter=dot && echo 3 tests passed',
        posttest: 'touch ended.txt',
      },
    }),
    'shop.test.js': `import { test } from 'node:test'\n${test('adds to the cart', 900)}${test('applies a discount', 1600)}${test('charges the card', 2500)}`,
    'bin/tapetree': `#!/bin/sh\necho $$ > pid.txt\nexec ${builtCommand.map((part) => `'${part}'`).join(' ')} "$@"\n`,
  }
  await mkdir(join(cwd, 'bin'))
  for (const [name, text] of Object.entries(files)) await writeFile(join(cwd, name), text)
  await chmod(join(cwd, 'bin/tapetree'), 0o755)
}

async function type(terminal: Terminal, text: string): Promise<void> {
  for (const character of text) {
    terminal.type(character)
    await delay(45)
  }
  await delay(300)
  terminal.press('enter')
}

const svg = animatedSvg(await record(), {
  ...size,
  title:
    'A terminal: an agent runs the tests, is killed with kill -9, and resumes with the real result of the command.',
})
await writeFile(target, svg)
console.log(`${target}: ${svg.length} bytes`)
