import type { DocumentRegistry } from '@jupyterlab/docregistry';
import {
  ABCWidgetFactory,
  DocumentWidget,
  TextModelFactory
} from '@jupyterlab/docregistry';
import type { Contents } from '@jupyterlab/services';
import { Widget } from '@lumino/widgets';

/** A model without content: a trace is not to be loaded into the page. */
export class FileModelFactory extends TextModelFactory {
  override get name(): string {
    return 'jaxprof-file';
  }

  override get contentType(): Contents.ContentType {
    return 'file';
  }

  override get fileFormat(): Contents.FileFormat {
    return null;
  }
}

/** Opens a trace or report by importing it; the tab tells what is wrong, and closes when all is well. */
export class ImportFactory extends ABCWidgetFactory<DocumentWidget> {
  /** `run` imports the path and gives an empty text, or why that can't be done. */
  constructor(
    options: DocumentRegistry.IWidgetFactoryOptions<DocumentWidget>,
    private readonly _reading: string,
    private readonly _run: (path: string) => Promise<string>
  ) {
    super(options);
  }

  protected createNewWidget(context: DocumentRegistry.Context): DocumentWidget {
    const content = new Widget();
    content.addClass('jp-JaxProf-importing');
    const text = document.createElement('p');
    text.textContent = this._reading;
    text.setAttribute('role', 'status');
    content.node.append(text);
    const widget = new DocumentWidget({ content, context });
    void context.ready
      .then(() => this._run(context.path))
      .then(problem => {
        if (problem) {
          text.textContent = problem;
        } else {
          widget.dispose();
        }
      });
    return widget;
  }
}
