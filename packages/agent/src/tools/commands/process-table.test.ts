import { expect, test } from 'vitest'
import { environmentOf, listProcesses, parsePs, parseStat, readProcess } from './process-table.ts'

test('a process whose name holds spaces and parentheses is read by its right fields', () => {
  const numbers = Array.from({ length: 40 }, (_, index) => index + 100).join(' ')
  expect(parseStat(`77 (a) b (c) S 5 6 7 ${numbers}`)).toEqual({
    pid: 77,
    parentId: 5,
    groupId: 6,
    sessionId: 7,
    isZombie: false,
    startTime: '115',
    name: 'a) b (c',
  })
})

test('a process that has ended and was not reaped is a zombie', () => {
  expect(parseStat(`1 (x) Z 0 0 0 ${'0 '.repeat(30)}`)).toMatchObject({ isZombie: true })
})

test('a line that is no process is nothing', () => {
  expect(parseStat('')).toBeUndefined()
  expect(parseStat('1 (x) S 0')).toBeUndefined()
})

test('the output of ps is parsed on systems without /proc', () => {
  const table = [
    '    1     0     1 Ss   Fri Nov 13 08:00:01 2026     /sbin/launchd',
    '  812   700   812 Z    Sat Nov  7 21:05:59 2026     (node)',
  ].join('\n')
  expect(parsePs(table)).toEqual([
    {
      pid: 1,
      parentId: 0,
      groupId: 1,
      sessionId: 0,
      isZombie: false,
      startTime: 'Fri Nov 13 08:00:01 2026',
      name: 'launchd',
    },
    {
      pid: 812,
      parentId: 700,
      groupId: 812,
      sessionId: 0,
      isZombie: true,
      startTime: 'Sat Nov 7 21:05:59 2026',
      name: '(node)',
    },
  ])
})

test('this process is in the table with its parent and its environment', () => {
  const self = readProcess(process.pid)
  expect(self).toMatchObject({ pid: process.pid, parentId: process.ppid, isZombie: false })
  expect(listProcesses()).toContainEqual(self)
  expect(environmentOf(process.pid).some((variable) => variable.startsWith('PATH='))).toBe(true)
})

test('a missing process has no entry and no environment', () => {
  expect(readProcess(2 ** 22 + 1)).toBeUndefined()
  expect(environmentOf(2 ** 22 + 1)).toEqual([''])
})
