import { visibleWidth } from '@earendil-works/pi-tui'
import type { ListedMessage, OpenQuestion } from '@tapetree/client'
import { text, type SessionInfo } from '@tapetree/session'
import type { Entry } from '@tapetree/session/format'
import type { TreeNode } from '@tapetree/session/view'
import { describe, expect, test } from 'vitest'
import type { OfferedModel } from '../../session-source.ts'
import { ComparePanel } from './compare-panel.ts'
import { ConfirmDialog, ResumeDialog } from './resume-dialog.ts'
import { HelpPanel } from './help-panel.ts'
import { ModelPicker } from './pickers.ts'
import type { FramedPanel } from './parts/panel-frame.ts'
import { PalettePanel } from './palette-panel.ts'
import { SecretPanel } from './secret-panel.ts'
import { PlanDialog } from './plan-dialog.ts'
import { PermissionDialog } from './permission-dialog.ts'
import { QuestionDialog } from './question-dialog.ts'
import { QueuePanel } from './queue-panel.ts'
import { SessionPicker } from './session-picker.ts'
import { darkTheme as theme, press } from './testing/panel-driver.ts'
import { TreePanel } from './tree-panel.ts'

/** One sequence of each class, wide and combined letters, tabs, lines, and an endless word. */
const hostile = `\u001b[2J\u001b]0;t\u0007\u001bP1$q\u001b\\\u009b31m\u0090x\u009c\u001b(0\r\b\u007f\u202e漢字👩‍👩‍👧e\u0301\t\n${'x'.repeat(300)} ${'漢'.repeat(90)}`
const noop = (): void => {}

describe.each(Object.entries(panels()))('%s', (_, panel) => {
  test('keeps its width and rows at any size, and emits only our colors', () => {
    for (const keys of [[], ['down', 'e', 'l', 's', '4', 'enter'], [hostile.replaceAll(/[^ -~]/g, '')]]) {
      press(panel, ...keys)
      for (let width = 1; width <= 100; width += width < 20 ? 1 : 13) {
        for (const rows of [4, 9, 24]) {
          panel.setRows(rows)
          const lines = panel.render(width)
          expect(Math.max(...lines.map(visibleWidth))).toBeLessThanOrEqual(width)
          expect(lines.length).toBeLessThanOrEqual(rows)
          expect(lines.join('').replaceAll(/\u001b\[[0-9;]*m/g, '')).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e]/)
        }
      }
    }
  })
})

function panels(): Record<string, FramedPanel> {
  const now = clock()
  const onAnswer = noop
  const onClose = noop
  const request: OpenQuestion = {
    requestId: 'r',
    tool: hostile,
    title: `${hostile}\n${hostile}`,
    input: { [hostile]: hostile },
    options: ['1', '2'].map((optionId) => ({ optionId, label: hostile, kind: 'allow_once' })),
  }
  return {
    compare: comparePanel(),
    PalettePanel: new PalettePanel({
      theme,
      entries: (['command', 'file', 'session', 'model'] as const).map((kind) => ({
        kind,
        name: hostile,
        detail: hostile,
        take: noop,
      })),
      onSearch: noop,
      onClose,
    }),
    PlanDialog: new PlanDialog({ theme, request, now, onAnswer, onClose }),
    SecretPanel: new SecretPanel({ theme, title: 'Key', intro: ['A sentence.'], onSubmit: noop, onClose }),
    PermissionDialog: new PermissionDialog({
      theme,
      requests: [request, { ...request, requestId: 's' }],
      now,
      onAnswer,
      onClose,
    }),
    QuestionDialog: new QuestionDialog({ theme, request, now, onAnswer, onClose }),
    QueuePanel: queuePanel(),
    TreePanel: treePanel(),
    SessionPicker: sessionPicker(),
    ModelPicker: new ModelPicker({ theme, models: [model(true), model(false)], onChoose: noop, onClose }),
    ResumeDialog: new ResumeDialog({
      theme,
      matters: [hostile, hostile],
      onResume: noop,
      onLeave: noop,
      onNewMessage: noop,
    }),
    ConfirmDialog: new ConfirmDialog({ theme, title: 'Quit', text: hostile, onAnswer }),
    HelpPanel: new HelpPanel({
      theme,
      sections: [{ title: 'Keys', rows: [{ name: hostile, says: hostile }] }],
      onClose,
    }),
  }
}

/** A second passes between two keys. */
function clock(): () => number {
  let now = 0
  return () => (now += 1000)
}

function queuePanel(): QueuePanel {
  const message = { delivery: 'steer', message: hostile, imageIds: ['i'], queuedAt: '', held: true } as const
  const messages = ['a', 'b'].map((id): ListedMessage => ({ id, ...message, imageIds: ['i'] }))
  const queue = { queueLength: 2, total: 9, hold: { reason: hostile }, messages }
  const on = {
    onEdit: noop,
    onMove: noop,
    onHold: noop,
    onRelease: noop,
    onRemove: noop,
    onPaste: noop,
    onDelivery: noop,
  }
  return new QueuePanel({ theme, queue, fullText: () => hostile, ...on, onClose: noop })
}

function comparePanel(): ComparePanel {
  const side = {
    leafId: 'e1',
    entryCount: 1,
    messageCount: 1,
    entries: [{ id: 'e', parentId: null, seq: 1, type: 'message', timestamp: '', preview: hostile, label: hostile }],
    usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2, cost: 1 },
    runMs: 1000,
    checks: [{ command: hostile, exitCode: 1, durationMs: 1, timestamp: '' }],
  }
  const change = { path: hostile, change: 'changed', addedLines: 1, removedLines: 1, isBinary: false } as const
  const files = { changes: [{ ...change, patch: `+${hostile}` }], changedCount: 1, addedLines: 1, removedLines: 1 }
  const panel = new ComparePanel({
    theme,
    comparison: { commonAncestor: null, left: side, right: side, files },
    onClose: noop,
  })
  press(panel, 'd')
  return panel
}

function treePanel(): TreePanel {
  const task = { type: 'tool_use', toolUse: { id: 'c', name: 'task', input: { description: hostile } } }
  const entry = { type: 'message', parentId: null, message: { role: 'assistant', content: [text(hostile), task] } }
  const node = (id: string, children: TreeNode[]): TreeNode => ({
    entry: { ...entry, id } as unknown as Entry,
    children,
    label: hostile,
  })
  const deep = Array.from({ length: 60 }).reduce<TreeNode>(
    (inner, _, index) => node(`d${index}`, [inner, node(`s${index}`, [])]),
    node('d', []),
  )
  return new TreePanel({
    theme,
    tree: { roots: [deep], leafId: 'd59' },
    onGo: noop,
    onLabel: noop,
    onFork: noop,
    onCompare: noop,
    onOpenSession: noop,
    onClose: noop,
  })
}

function sessionPicker(): SessionPicker {
  const info = { name: hostile, firstText: hostile, cwd: hostile, created: '', modified: '', messageCount: 1 }
  const sessions = ['a', 'b'].map((id): SessionInfo => ({
    id,
    ...info,
    status: 'running',
    queueLength: 1,
    cost: 1,
    damaged: true,
  }))
  return new SessionPicker({
    theme,
    data: { sessions, scope: 'all' },
    onOpen: noop,
    onScope: noop,
    onDelete: noop,
    onClose: noop,
  })
}

function model(isUsable: boolean): OfferedModel {
  return { reference: hostile, provider: hostile, modelId: hostile, name: hostile, thinkingLevels: [], isUsable }
}
