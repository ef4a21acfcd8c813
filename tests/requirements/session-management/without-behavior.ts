import type { LinesWithoutBehavior } from '../requirement.ts'

/** Lines of session-management.md that describe no behavior. */
export const withoutBehavior: LinesWithoutBehavior = {
  'Session Management': { 'document summary': ['7ae915c7'] },
  'Session Recording Flow': { 'diagram part': ['8fd5e0c5', '95542047', '6007345c'], 'diagram syntax': ['3aba69a0'] },
  'Event Types': { 'table header': ['62d901ce'] },
  'Session State Ownership Model': {
    'diagram part': [
      '95b9c45a',
      '13d4512f',
      '15824c24',
      '1ca81d6f',
      '38ba68ff',
      '24795e6b',
      'fc3d1a99',
      'daf45dc7',
      'd3442590',
    ],
    'diagram syntax': ['2fa09e54'],
    'opening line': ['57a03ba1'],
  },
  'Component Responsibilities': { 'table header': ['eadaeede'] },
  'Observer Pattern': { 'opening line': ['639c867c', 'd9e73bfb'] },
  Overview: { 'opening line': ['f9529897'] },
  'Key Types': { 'table header': ['6cbfaa62'] },
  'Error Values': { 'table header': ['1a1d136b'] },
  'Usage Example': {
    'code syntax': ['04bbeda4', '41ee1305', '1a7d90b9', '9835170f', 'c17d0469'],
    'opening line': ['dc30760d', '6bf46bc1', '5d12f36a'],
  },
  'Message ID Format': { 'opening line': ['e0ded1ea'] },
  'Queue Storage': { 'opening line': ['6dd40483', 'c919f3b3', 'a98cd771'] },
  'Queue REST API Endpoints': { 'opening line': ['71e50e08', '5d8447cd'], 'table header': ['695021d2'] },
  'Queue Processing Flow': {
    'diagram part': ['f206e691', 'c9f1e615', '6453d4e4', '63d63b77', '6a37b144', '41ff6e8c'],
    'diagram syntax': ['536f52ac'],
  },
  'WebSocket Notifications': { 'table header': ['41d2058c'] },
  'Store Integration': { 'opening line': ['9a47f21d'] },
}
