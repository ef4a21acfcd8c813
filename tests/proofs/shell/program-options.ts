import { spawnSync } from 'node:child_process'
import { readOnlyPrograms } from '../../../packages/agent/src/permissions/shell/programs/read-only-programs.ts'
import { searchPath } from './sandbox.ts'

/** The options that an installed program says it has, whether or not the judge knows them. */
export interface ProgramOptions {
  /** The program, with the subcommand if it has one. */
  name: string
  long: string[]
  short: string[]
}

/** Git's subcommands that read, and some that only sometimes do. */
const gitCommands =
  'log show diff status ls-files ls-tree grep blame branch tag cat-file rev-parse shortlog describe config stash reflog remote'.split(
    ' ',
  )

/** What git documents elsewhere. */
const gitDiffOptions =
  `--output --ext-diff --textconv --no-textconv --submodule --no-index --word-diff --stat --patch --raw
  --name-only --follow --pickaxe-regex --show-signature --pretty --format --no-ext-diff --ignore-submodules --cc --exit-code`.split(
    /\s+/,
  )

/** Asks every installed program of the judge's table for its options. */
export function readProgramOptions(): ProgramOptions[] {
  // Programs that are only asked for their version start something with anything else.
  const names = [...readOnlyPrograms].filter(([, rule]) => rule.maxOperands !== 0).map(([name]) => name)
  const programs = ['find', 'ls | xargs', 'timeout', ...names].flatMap((name) => {
    const text = ask(name.split(' ').at(-1)!, ['--help'])
    return text === undefined ? [] : [optionsIn(name, text)]
  })
  const git = gitCommands.map((command) => {
    const text = `${ask('git', [command, '--git-completion-helper-all']) ?? ''}\n${ask('git', [command, '-h']) ?? ''}`
    const { name, long, short } = optionsIn(`git ${command}`, text)
    return { name, long: [...new Set([...long, ...gitDiffOptions])], short: [...short, '-L', '-S', '-O', '-p'] }
  })
  return [...programs, ...git]
}

function ask(program: string, words: string[]): string | undefined {
  const environment = { PATH: searchPath, HOME: '/nonexistent', LANG: 'C.UTF-8', PAGER: 'cat' }
  const asked = spawnSync(program, words, { cwd: '/', env: environment, encoding: 'utf8', input: '', timeout: 5000 })
  return asked.error ? undefined : `${asked.stdout}\n${asked.stderr}`
}

function optionsIn(name: string, text: string): ProgramOptions {
  const words = text.match(/(?<![\w-])--?[A-Za-z0-9][\w-]*/g) ?? []
  const options = [...new Set(words)]
  return {
    name,
    long: options.filter((option) => option.startsWith('--') || (name === 'find' && option.length > 2)),
    short: options.filter((option) => /^-\w$/.test(option)),
  }
}
