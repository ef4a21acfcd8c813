import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { registryHosts } from './registry-hosts.ts'

let folder: string
let home: string
let bin: string
let work: string

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'tapetree-registries-')))
  ;[home, bin, work] = [join(folder, 'home'), join(folder, 'bin'), join(folder, 'work')]
  for (const path of [home, bin, work]) mkdirSync(path)
  // Nothing else of this machine.
  symlinkSync('/bin/cat', join(bin, 'cat'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
})

/** A program that prints this, and writes to a file how it was called. */
function program(name: string, printed: string, { place = bin } = {}): void {
  const file = join(place, name)
  writeFileSync(
    file,
    `#!/bin/sh\necho "$(pwd) $* registry=$npm_config_registry" >> ${folder}/calls\ncat <<'END'\n${printed}\nEND\n`,
  )
  chmodSync(file, 0o755)
}

const calls = (): string[] => readFileSync(join(folder, 'calls'), 'utf8').trim().split('\n')

const hosts = (env: Record<string, string> = {}): Promise<readonly string[]> =>
  registryHosts({ home, folders: [work], env: { PATH: `${work}:${bin}`, ...env } })()

describe('the registries of a user', () => {
  test('are those that the package managers are configured for', async () => {
    program(
      'npm',
      '{ "registry": "https://npm.example/", "@me:registry": "https://me.example/x", "other": "https://no.example" }',
    )
    program(
      'pip3',
      '  -i, --index-url <url>  Base URL of the index\n      (default\n      https://pip.example/simple). This\n',
    )
    program('go', 'https://go.example,https://go-2.example|direct\nsum.example+1+key')
    program('gem', '*** CURRENT SOURCES ***\n\nhttps://gem.example/')
    mkdirSync(join(home, '.cargo/registry/index/index.example-0123456789abcdef'), { recursive: true })
    writeFileSync(
      join(home, '.cargo/registry/index/index.example-0123456789abcdef/config.json'),
      '{ "dl": "https://crates.example/api" }',
    )
    expect(await hosts()).toEqual([
      'crates.example',
      'gem.example',
      'go-2.example',
      'go.example',
      'index.example',
      'me.example',
      'npm.example',
      'pip.example',
      'sum.example',
    ])
  })

  test('are asked for once, in the home folder', async () => {
    program('npm', '{ "registry": "https://npm.example/" }')
    const ask = registryHosts({ home, folders: [work], env: { PATH: bin } })
    expect(await Promise.all([ask(), ask()])).toEqual([['npm.example'], ['npm.example']])
    expect(calls()).toEqual([`${home} config list --json registry=`])
  })

  test('do not come from a program of the project, nor from one that fails or prints nonsense', async () => {
    program('npm', '{ "registry": "https://evil.example/" }', { place: work })
    program('npm', 'nonsense https://evil.example/')
    program('gem', 'https://localhost/ https://127.0.0.1/ https://10.0.0.1/x ftp://a.example')
    writeFileSync(join(bin, 'pnpm'), '#!/bin/sh\necho https://evil.example\nexit 1\n', { mode: 0o755 })
    expect(await hosts()).toEqual([])
  })

  test('do not come from the variables of a package manager that runs us, which hold settings of the project', async () => {
    program('npm', '{}')
    await hosts({ npm_config_registry: 'https://own.example' })
    await hosts({ npm_config_registry: 'https://evil.example', npm_execpath: '/usr/bin/npm' })
    expect(calls()).toEqual([
      `${home} config list --json registry=https://own.example`,
      `${home} config list --json registry=`,
    ])
  })

  test('are none if the home folder is part of the project', async () => {
    program('npm', '{ "registry": "https://npm.example/" }')
    expect(await registryHosts({ home, folders: [folder], env: { PATH: bin } })()).toEqual([])
  })
})
