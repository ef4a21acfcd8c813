import type { LinesWithoutBehavior } from '../requirement.ts'

/** Lines of agent-module.md that describe no behavior. */
export const withoutBehavior: LinesWithoutBehavior = {
  'Agent Module': { 'document summary': ['dc8ae0d7'] },
  Overview: { 'file name': ['a418a3b5', '051d2e64'], 'table header': ['9e82516d'] },
  'Package Structure': {
    'file name': ['99974eb0', 'ae97089e', '8ca5f79b', '7555c876', 'fb1dea85', '725c405a', 'da97a5e0'],
  },
  Architecture: {
    'diagram part': [
      '87c63cb1',
      'c9bd0bce',
      'fb2fa24f',
      '67493511',
      '1508590f',
      'cfe2006c',
      '54836898',
      '593ee800',
      '100c55c3',
      '374ef306',
      '316f34d8',
      '5331de76',
    ],
    'diagram syntax': ['2fa09e54'],
  },
  'Data Types': {
    'diagram syntax': ['417505ab'],
    'type name': ['684622c3', '657471e6', '71edb81c', '09cab669', '5f916f31', 'd6d389e6'],
    'type relation': ['c1d65b99', '33640cff'],
  },
  'Message Roles (Role Enum)': { 'table header': ['dd0cbb13'] },
  'Agent Execution Flow': {
    'diagram part': ['e288d46e', 'ee0bb730', '27576201', '066ea78f', '4566f0c5', '77392e57'],
    'diagram syntax': ['536f52ac'],
  },
  'Session Management': { 'diagram syntax': ['417505ab'] },
  'Session Lifecycle': { 'diagram syntax': ['b4a65dfd'] },
  'Thread Safety': { 'table header': ['732b9d44'] },
  'Streaming and Callbacks': {
    'diagram part': ['b6f6dc59', '47a00532', '3a6ccb85', '33255a08', '7bdf789a', 'bde15d76', 'cde5b9e9'],
    'diagram syntax': ['35bb4631'],
    'opening line': ['e55d2529'],
  },
  'System Prompt': {
    'diagram part': ['306941e3', '93cfc60c'],
    'diagram syntax': ['a3d27ba5'],
    'table header': ['d5b3468c'],
  },
  'Request Cancellation': {
    'diagram part': ['f6d3f205', '41ff6e8c', 'a94f41f6', 'a9260961'],
    'diagram syntax': ['536f52ac'],
    'opening line': ['9501226f'],
    'table header': ['22a285fe'],
  },
  'Tool Execution': { 'diagram syntax': ['a3d27ba5'], 'opening line': ['9c7ebe19'], 'table header': ['b4b1b5b2'] },
  'PubSub Event Integration': {
    'diagram part': ['dd3f546f', '88a2e4ba', '6cc20ae6'],
    'diagram syntax': ['35bb4631'],
    'opening line': ['705acdc9'],
    'table header': ['4801b34d'],
  },
  'Reasoning/Thinking Support': {
    'diagram part': ['ee0bb730', '27576201', '5f7df480'],
    'diagram syntax': ['536f52ac'],
    'opening line': ['f2b9cf53'],
  },
  'History Building': { 'diagram part': ['a4a3fee5', '83c6d18a'], 'diagram syntax': ['35bb4631'] },
  'Agent Interface': { 'opening line': ['ade9d3df'], 'table header': ['80b953d0'] },
  'DefaultAgent Additional Methods': { 'table header': ['80b953d0'] },
  SendOptions: { 'opening line': ['4786fecc', '56aef9b8'], 'table header': ['5c0ef493'] },
  'SessionStore Methods': { 'table header': ['80b953d0'] },
  'Error Types': { 'table header': ['65bf8f77'] },
  'With TUI (Chat Page)': { 'opening line': ['908e8610'] },
  'Related Documentation': { 'other document': ['abfcb7c7', '33d01dfa', 'ab935a35'] },
}
