import { expect, test } from 'vitest'
import { placesOf } from './places.ts'

const home = '/home/ada'

test('files are in the XDG folders', () => {
  const env = { XDG_CONFIG_HOME: '/c', XDG_DATA_HOME: '/d', XDG_STATE_HOME: '/s', XDG_RUNTIME_DIR: '/run/user/1' }
  expect(placesOf({ home, env })).toEqual({
    config: '/c/tapetree',
    sessions: '/d/tapetree/sessions',
    workspaces: '/d/tapetree/workspaces',
    copies: '/d/tapetree/copies',
    sandbox: '/d/tapetree/sandbox',
    state: '/s/tapetree',
    runtime: '/run/user/1/tapetree',
  })
})

test('without these variables, or with relative ones, files are below the home folder', () => {
  expect(placesOf({ home, env: { XDG_DATA_HOME: 'data' } })).toMatchObject({
    config: '/home/ada/.config/tapetree',
    sessions: '/home/ada/.local/share/tapetree/sessions',
    state: '/home/ada/.local/state/tapetree',
  })
})

test('TAPETREE_HOME puts all files in one folder', () => {
  expect(placesOf({ home, env: { TAPETREE_HOME: '/t' } })).toMatchObject({
    config: '/t',
    sessions: '/t/sessions',
    workspaces: '/t/workspaces',
    state: '/t/state',
  })
})
