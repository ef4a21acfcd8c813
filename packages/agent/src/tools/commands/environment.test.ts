import { expect, test } from 'vitest'
import { commandEnvironment } from './environment.ts'

test('a command gets what it needs to find programs, its home and its language', () => {
  const ours = {
    PATH: '/bin',
    HOME: '/home/me',
    LC_TIME: 'de_DE',
    XDG_CACHE_HOME: '/c',
    JAVA_HOME: '/j',
    TERM: 'xterm',
  }
  expect(commandEnvironment(ours)).toMatchObject(ours)
})

test('a command gets no key, no token and no socket of a key agent', () => {
  const secrets = {
    ANTHROPIC_API_KEY: 'canary',
    OPENAI_API_KEY: 'canary',
    GEMINI_API_KEY: 'canary',
    GITHUB_TOKEN: 'canary',
    AWS_SECRET_ACCESS_KEY: 'canary',
    NPM_TOKEN: 'canary',
    npm_config___authToken: 'canary',
    SSH_AUTH_SOCK: 'canary',
    DATABASE_URL: 'canary',
    BASH_ENV: 'canary',
    PATHOLOGICAL: 'canary',
  }
  expect(Object.values(commandEnvironment(secrets))).not.toContain('canary')
})

test('programs do not prompt or page', () => {
  expect(commandEnvironment({ PAGER: 'less', GIT_EDITOR: 'vi' })).toMatchObject({
    TERM: 'dumb',
    NO_COLOR: '1',
    PAGER: 'cat',
    GIT_PAGER: 'cat',
    MANPAGER: 'cat',
    SYSTEMD_PAGER: '',
    GIT_TERMINAL_PROMPT: '0',
    GIT_EDITOR: 'true',
    DEBIAN_FRONTEND: 'noninteractive',
  })
})

test('additional variables can be passed by name or prefix, and be set', () => {
  const ours = { MY_ONE: '1', MY_TWO: '2', GITHUB_TOKEN: 'mine', OTHER: 'x', GONE: undefined }
  const given = commandEnvironment(ours, { pass: ['MY_*', 'GITHUB_TOKEN', 'GONE'], set: { PAGER: 'more', EXTRA: 'y' } })
  expect(given).toMatchObject({ MY_ONE: '1', MY_TWO: '2', GITHUB_TOKEN: 'mine', PAGER: 'more', EXTRA: 'y' })
  expect(given).not.toHaveProperty('OTHER')
  expect(given).not.toHaveProperty('GONE')
})

test('git and npm write nothing when they read, whatever the environment says', () => {
  expect(commandEnvironment({ GIT_OPTIONAL_LOCKS: '1', GIT_CONFIG_COUNT: '0' })).toMatchObject({
    GIT_OPTIONAL_LOCKS: '0',
    GIT_CONFIG_COUNT: '3',
    npm_config_logs_max: '0',
  })
})
