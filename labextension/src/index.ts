import { capturePlugin } from './plugins/capture';
import { capturesPlugin } from './plugins/captures';
import { cardPlugin } from './plugins/card';
import { comparePlugin } from './plugins/compare';
import { importingPlugin } from './plugins/importing';
import { livePlugin } from './plugins/live';
import { missingPlugin } from './plugins/missing';
import { patternsPlugin } from './plugins/patterns';
import { runPlugin } from './plugins/run';
import { serverPlugin } from './plugins/server';
import { storePlugin } from './plugins/store';
import { viewersPlugin } from './plugins/viewers';

export default [
  serverPlugin,
  capturesPlugin,
  capturePlugin,
  comparePlugin,
  viewersPlugin,
  cardPlugin,
  patternsPlugin,
  livePlugin,
  importingPlugin,
  storePlugin,
  missingPlugin,
  runPlugin
];
